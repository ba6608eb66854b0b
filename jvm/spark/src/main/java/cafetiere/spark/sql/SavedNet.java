// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.score.CellType;
import cafetiere.core.score.Scorer;
import cafetiere.core.score.TableScorer;
import cafetiere.spark.feed.MeanFiles;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/**
 * A model that {@code CaffeModel.write} has saved, as a task reads it, which has no session.
 *
 * @param path of its folder
 * @param output the blob to compute; "" for the model's first one
 */
record SavedNet(String path, String output) {
  private static final String WEIGHTS = "/data/model.caffemodel";
  private static final String NET = "/net";

  boolean is(String otherPath, String otherOutput) {
    return path.equals(otherPath) && output.equals(otherOutput);
  }

  /** Text that is another one when somebody has saved another model there. */
  String version(Configuration conf) {
    return output + " of " + HadoopFiles.version(weights(conf), conf);
  }

  /** A scorer of a row at a time; the caller closes it. */
  Scorer open(Configuration conf) {
    JsonNode params = params(conf);
    String net = params.path("net").asText();
    return new Scorer(net, HadoopFiles.read(weights(conf), conf), blob(params), 1,
        MeanFiles.of(conf, net).bytes());
  }

  /** The same of rows of a table that has such columns. */
  TableScorer open(Map<String, CellType> columns, Configuration conf) {
    JsonNode params = params(conf);
    return new TableScorer(params.path("net").asText(), HadoopFiles.read(weights(conf), conf),
        columns, blob(params));
  }

  private String blob(JsonNode params) {
    return output.isEmpty() ? params.path("outputCols").path(0).asText("") : output;
  }

  private JsonNode params(Configuration conf) {
    String folder = weights(conf).replace(WEIGHTS, "");
    return Json.parse(HadoopFiles.readFirst(folder + "/metadata/part-*", conf)).path("paramMap");
  }

  /** That of the model, or of the one inside the model of a table. */
  private String weights(Configuration conf) {
    String file = path + WEIGHTS;
    if (HadoopFiles.exists(file, conf)) return file;
    if (HadoopFiles.exists(path + NET + WEIGHTS, conf)) return path + NET + WEIGHTS;
    throw new IllegalArgumentException("there is no saved CaffeModel at " + path + " (no " + file
        + "): give predict the path that model.write().save() has written; a model larger than"
        + " spark.cafetiere.largestModel is for transform");
  }
}
