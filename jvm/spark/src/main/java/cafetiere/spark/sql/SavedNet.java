// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.score.CellType;
import cafetiere.core.score.Scorer;
import cafetiere.core.score.TableScorer;
import cafetiere.spark.feed.MeanFiles;
import cafetiere.spark.kinds.ColumnKinds;
import cafetiere.spark.saved.ModelFolder;
import cafetiere.spark.util.HadoopFiles;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.types.StructType;

/**
 * A model that {@code CaffeModel.write} has saved, as a task reads it, which has no session.
 *
 * @param path of its folder, or of that of the model of a table
 * @param output the blob to compute; "" for the model's first one
 * @param folder where it is
 */
record SavedNet(String path, String output, ModelFolder folder) {
  /** Looks for it. */
  static SavedNet find(String path, String output, Configuration conf) {
    for (ModelFolder folder : List.of(new ModelFolder(path), ModelFolder.inTableModel(path))) {
      if (HadoopFiles.exists(folder.weights(), conf)) return new SavedNet(path, output, folder);
    }
    ModelFolder.otherThanModel(path, conf).ifPresent(told -> {
      throw new IllegalArgumentException(told + ", or use transform");
    });
    throw new IllegalArgumentException("there is no saved CaffeModel at " + path + " (no "
        + new ModelFolder(path).weights() + "): give predict the path that model.write().save() has"
        + " written; a model larger than spark.cafetiere.largestModel is for transform");
  }

  boolean is(String otherPath, String otherOutput) {
    return path.equals(otherPath) && output.equals(otherOutput);
  }

  /** Text that is another one when somebody has saved another model there. */
  String version(Configuration conf) {
    return output + " of " + HadoopFiles.version(folder.weights(), conf);
  }

  /** A scorer of a row at a time; the caller closes it. */
  Scorer open(Configuration conf) {
    JsonNode params = params(conf);
    String net = params.path("net").asText();
    requireArrays(net);
    return new Scorer(net, HadoopFiles.read(folder.weights(), conf), blob(params), 1,
        MeanFiles.of(conf, net).bytes());
  }

  /** Refuses a net that reads a table's columns: an array does not say which number is whose. */
  private void requireArrays(String net) {
    List<String> columns = ColumnKinds.columns(net);
    if (columns.isEmpty()) return;
    throw new IllegalArgumentException("the model at " + path + " is of a table: give predict a struct of its"
        + " columns, as in struct(" + String.join(", ", columns) + ")");
  }

  /** The same of rows of a table that has such columns; refuses types that the net has not learned. */
  TableScorer open(StructType row, Map<String, CellType> columns, Configuration conf) {
    JsonNode params = params(conf);
    String net = params.path("net").asText();
    ColumnKinds.ofNet(net).require(row);
    return new TableScorer(net, HadoopFiles.read(folder.weights(), conf), columns, blob(params));
  }

  /** Of the model, which scores what it is given: a preprocessor would need the whole row. */
  private JsonNode params(Configuration conf) {
    JsonNode params = folder.params(conf);
    String preprocessor = params.path("preprocessor").asText();
    if (preprocessor.isEmpty()) return params;
    throw new IllegalArgumentException("the model at " + path + " has the preprocessor " + preprocessor
        + ", which changes rows before the net reads them, and predict cannot apply it: use"
        + " CaffeModel.load(path).transform(table)");
  }

  private String blob(JsonNode params) {
    return output.isEmpty() ? params.path("outputCols").path(0).asText("") : output;
  }
}
