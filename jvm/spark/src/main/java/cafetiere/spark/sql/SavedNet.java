// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.score.Scorer;
import cafetiere.spark.feed.MeanFiles;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import org.apache.hadoop.conf.Configuration;

/**
 * A model that {@code CaffeModel.write} has saved, as a task reads it, which has no session.
 *
 * @param path of its folder
 * @param output the blob to compute; "" for the model's first one
 */
record SavedNet(String path, String output) {
  private static final String WEIGHTS = "/data/model.caffemodel";

  boolean is(String otherPath, String otherOutput) {
    return path.equals(otherPath) && output.equals(otherOutput);
  }

  /** Text that is another one when somebody has saved another model there. */
  String version(Configuration conf) {
    return output + " of " + HadoopFiles.version(weights(conf), conf);
  }

  /** A scorer of a row at a time; the caller closes it. */
  Scorer open(Configuration conf) {
    JsonNode metadata = Json.parse(HadoopFiles.readFirst(path + "/metadata/part-*", conf));
    JsonNode params = metadata.path("paramMap");
    String blob = output.isEmpty() ? params.path("outputCols").path(0).asText("") : output;
    String net = params.path("net").asText();
    return new Scorer(net, HadoopFiles.read(weights(conf), conf), blob, 1,
        MeanFiles.of(conf, net).bytes());
  }

  private String weights(Configuration conf) {
    String file = path + WEIGHTS;
    if (HadoopFiles.exists(file, conf)) return file;
    throw new IllegalArgumentException("there is no saved CaffeModel at " + path + " (no " + file
        + "): give predict the path that model.write().save() has written; a model larger than"
        + " spark.cafetiere.largestModel is for transform");
  }
}
