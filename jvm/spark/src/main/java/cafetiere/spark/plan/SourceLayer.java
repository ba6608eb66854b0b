// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.core.Engine;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A layer of a net that is fed from outside.
 *
 * @param json what the engine says of it, as cft_describe gives it for "sources"
 */
public record SourceLayer(JsonNode json) {
  /** Those of a net in a phase. A text that is "" is not given. */
  public static List<SourceLayer> of(String solver, String net, String phase) {
    ObjectNode options = Json.object().put("phase", phase).put("sources", 1);
    if (!solver.isEmpty()) options.put("solver", solver).put("max_iter", 1);
    if (!net.isEmpty()) options.put("net", net);
    List<SourceLayer> layers = new ArrayList<>();
    Json.parse(Engine.describe(options.toString())).path("sources")
        .forEach(layer -> layers.add(new SourceLayer(layer)));
    return layers;
  }

  /** Whether it reads files or a database, and rows of a table may stand for them. */
  public boolean isOfFiles() {
    return json.path("rows").asBoolean();
  }

  public String name() {
    return json.path("name").asText();
  }

  public String type() {
    return json.path("type").asText();
  }

  /** The path of its database or list. */
  public String source() {
    return json.path("source").asText("");
  }

  /** The names of its tops, in order. */
  public List<String> tops() {
    List<String> tops = new ArrayList<>();
    json.path("tops").forEach(top -> tops.add(top.asText()));
    return tops;
  }

  /** The names of its tops of a role, see {@link NetDescription.Top}: one or none. */
  public List<String> tops(String role) {
    List<String> found = new ArrayList<>();
    for (int i = 0; i < tops().size(); i++) {
      if (json.path("roles").path(i).asText().equals(role)) found.add(tops().get(i));
    }
    return found;
  }

  /** The columns of a net's features and label, by their tops. */
  public static Map<String, String> columns(List<SourceLayer> layers, String features, String label) {
    Map<String, String> columns = new HashMap<>();
    for (SourceLayer layer : layers) {
      layer.tops("features").forEach(top -> columns.put(top, features));
      layer.tops("label").forEach(top -> columns.put(top, label));
    }
    return columns;
  }

  /** Another of the layer's fields as text, "" if it has none of the name. */
  public String field(String name) {
    return json.path(name).asText("");
  }

  /** The same as a number, 0 if it has none. */
  public int number(String name) {
    return json.path(name).asInt();
  }

  /** The channels that encoded images are read with, 0 for those that they have. */
  public int forcedChannels() {
    return number("channels");
  }
}
