// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.core.Engine;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.SparkSession;

/** A net that reads the columns of a table, as an ONNX file with these columns as its inputs. */
public final class OnnxModel {
  private OnnxModel() {}

  /** Writes a file by Hadoop path; {@code thresholds} decide about classes, if there are any. */
  public static void write(String net, byte[] weights, double[] thresholds, String path) {
    ObjectNode options = Json.object().put("net", net);
    ArrayNode divisors = options.putArray("thresholds");
    for (double threshold : thresholds) divisors.add(threshold);
    byte[] file = Engine.onnx(options.toString(), weights);
    HadoopFiles.write(path, file, SparkSession.active().sparkContext().hadoopConfiguration());
  }
}
