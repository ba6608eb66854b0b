// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.core.Predictor;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.MeanFiles;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.TaskContext;

/**
 * What the tasks of a transform must know besides the weights.
 *
 * @param net text of the net's prototxt
 * @param weights SHA-256 of the weights
 * @param schema the columns that are fed
 * @param outputs the blobs to compute; none: what the net computes at its end
 * @param batch rows computed together
 * @param threads threads of each task, 0 for the task's cpus
 * @param predict whether a prediction comes after the outputs
 */
public record PredictionPlan(
    String net, String weights, FeedSchema schema, List<String> outputs, int batch, int threads,
    boolean predict) implements Serializable {

  /** One blob that is computed and its floats a row. */
  public record Output(String name, int size) {}

  /** The same with other outputs. */
  public PredictionPlan withOutputs(List<String> names) {
    return new PredictionPlan(net, weights, schema, names, batch, threads, predict);
  }

  /** Threads of a predictor in this task, or on the driver. */
  int threadsHere() {
    TaskContext task = TaskContext.get();
    return threads > 0 ? threads : task == null ? 1 : task.cpus();
  }

  /** A predictor on the driver; the caller closes it. */
  public Predictor open(byte[] model) {
    return open(model, threadsHere());
  }

  /** A predictor; the caller closes it. */
  Predictor open(byte[] model, int used) {
    ObjectNode options = Json.object().put("net", net).put("batch", batch).put("threads", used);
    options.set("schema", schema.toJson());
    options.set("inputs", schema.inputsJson());
    outputs.forEach(options.putArray("outputs")::add);
    return new Predictor(MeanFiles.local(options.toString()), model);
  }

  /** The outputs of a predictor. */
  public static List<Output> outputs(Predictor predictor) {
    JsonNode outputs = Json.parse(predictor.describe()).path("outputs");
    return outputs.findParents("name").stream()
        .map(output -> new Output(output.get("name").asText(), output.get("size").asInt()))
        .toList();
  }
}
