// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.netfiles;

import cafetiere.core.CafetiereException;
import cafetiere.core.Engine;
import cafetiere.spark.PreflightException;
import cafetiere.spark.plan.SourceLayer;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * A solver and a net that a table feeds: layers of the same tops and transformations stand in place of
 * those that read files.
 *
 * @param solver its text, with its nets inside unless {@code net} is given
 * @param net its text, "" if the solver names or has it
 */
public record RowNet(String solver, String net) {

  /**
   * Of the net that is trained; none where it cannot be read: that is found again, and told with
   * everything else.
   */
  public static List<SourceLayer> layers(String solver, String net) {
    try {
      return SourceLayer.of(solver, net, "TRAIN");
    } catch (CafetiereException e) {
      return List.of();
    }
  }

  /** Whether no table could feed the net as it is. */
  public static boolean isNeeded(List<SourceLayer> layers) {
    return layers.stream().anyMatch(SourceLayer::isOfFiles);
  }

  /**
   * The net for a table.
   *
   * @param layers those of the net in {@code phase}
   * @param columns the column for each top; others are fed by the column of their name
   */
  public static RowNet of(String solver, String net, String phase, List<SourceLayer> layers,
      Dataset<Row> table, Map<String, String> columns) {
    ObjectNode rows = Json.object();
    for (SourceLayer layer : layers) {
      if (!layer.isOfFiles()) continue;
      for (String top : layer.tops()) {
        // An image has a label beside it, which is one number.
        boolean isLabel = !layer.type().equals("HDF5Data") && rows.has(layer.tops().get(0));
        RowForm form = isLabel ? new RowForm(List.of(), false)
            : RowForm.of(table, columns.getOrDefault(top, top), layer);
        ObjectNode entry = rows.putObject(top).put("encoded", form.isEncoded());
        ArrayNode shape = entry.putArray("shape");
        form.shape().forEach(shape::add);
      }
    }
    ObjectNode options = Json.object().put("phase", phase).set("rows", rows);
    if (!solver.isEmpty()) options.put("solver", solver).put("max_iter", 1);
    if (!net.isEmpty()) options.put("net", net);
    JsonNode answer = describe(options);
    if (net.isEmpty()) return new RowNet(answer.path("solver_text").asText(), "");
    return new RowNet(solver, answer.path("rows_net_text").asText());
  }

  private static JsonNode describe(ObjectNode options) {
    try {
      return Json.parse(Engine.describe(options.toString()));
    } catch (CafetiereException e) {
      throw new PreflightException(List.of(e.getMessage()));
    }
  }
}
