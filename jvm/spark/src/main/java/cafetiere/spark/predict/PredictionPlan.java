// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.core.Predictor;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.TaskContext;

/**
 * What the tasks of a transform must know besides the weights.
 *
 * @param net text of the net's prototxt
 * @param weights what tells these weights from others: their SHA-256, or the version of their file
 * @param schema the columns that are fed
 * @param outputs the blobs to compute; none: what the net computes at its end
 * @param batch rows computed together
 * @param threads threads of each task, 0 for the task's cpus
 * @param precision what is computed in: float32, bf16 or auto
 * @param preprocessor the class that changes rows before they are fed, "" for none
 */
public record PredictionPlan(
    String net, String weights, FeedSchema schema, List<String> outputs, int batch, int threads,
    String precision, String preprocessor) implements Serializable {

  /** One blob that is computed and its floats a row. */
  public record Output(String name, int size) {}

  /** The same with other outputs. */
  public PredictionPlan withOutputs(List<String> names) {
    return new PredictionPlan(net, weights, schema, names, batch, threads, precision, preprocessor);
  }

  /** Threads of a predictor in this task, or on the driver. */
  int threadsHere() {
    TaskContext task = TaskContext.get();
    return threads > 0 ? threads : task == null ? 1 : task.cpus();
  }

  /** A predictor, in a task or on the driver; the caller closes it. */
  public Predictor open(byte[] model) {
    return new Predictor(options(""), model);
  }

  /** The same with weights in a file of this machine, of either form. */
  public Predictor open(Path file) {
    return new Predictor(options(file.toString()), null);
  }

  private String options(String file) {
    ObjectNode options =
        Json.object().put("net", net).put("batch", batch).put("threads", threadsHere())
            .put("precision", precision);
    options.set("schema", schema.toJson());
    schema.addTo(options);
    outputs.forEach(options.putArray("outputs")::add);
    options.put("weights", file);
    return options.toString();
  }

  /** The outputs of a predictor. */
  public static List<Output> outputs(Predictor predictor) {
    JsonNode outputs = Json.parse(predictor.describe()).path("outputs");
    return outputs.findParents("name").stream()
        .map(output -> new Output(output.get("name").asText(), output.get("size").asInt()))
        .toList();
  }
}
