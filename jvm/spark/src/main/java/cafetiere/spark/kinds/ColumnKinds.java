// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.kinds;

import cafetiere.core.Engine;
import cafetiere.spark.PreflightException;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * What the net of a table has learned its columns as. The engine does not know the types of tables: days,
 * microseconds and numbers are the same to it, so that a column of another type would give wrong scores
 * without an error.
 *
 * @param kinds of columns; a column that is not here may be of any type
 */
public record ColumnKinds(Map<String, ColumnKind> kinds) {
  /** Those that a net's TableData layers name. */
  public static ColumnKinds ofNet(String net) {
    return ofDescription(description(net));
  }

  /** The columns that a net's TableData layers read to predict; none of a net that is fed arrays. */
  public static List<String> columns(String net) {
    List<String> columns = new ArrayList<>();
    for (JsonNode top : description(net).path("data_layer").path("tops")) {
      if (!top.path("target").asBoolean()) top.path("columns").forEach(name -> columns.add(name.asText()));
    }
    return columns.stream().distinct().toList();
  }

  private static JsonNode description(String net) {
    return Json.parse(Engine.describe(Json.object().put("phase", "TEST").put("net", net).toString()));
  }

  /** The same of a net that the engine has described; rows to score need not have its targets. */
  public static ColumnKinds ofDescription(JsonNode net) {
    Map<String, ColumnKind> kinds = new HashMap<>();
    for (JsonNode top : net.path("data_layer").path("tops")) {
      if (top.path("target").asBoolean()) continue;
      for (int i = 0; i < top.path("columns").size(); i++) {
        add(kinds, top.path("columns").path(i).asText(), top.path("kinds").path(i).asText());
      }
    }
    return new ColumnKinds(Map.copyOf(kinds));
  }

  /** Those that {@link #json} has written; none of "". */
  public static ColumnKinds ofJson(String json) {
    Map<String, ColumnKind> kinds = new HashMap<>();
    if (!json.isEmpty()) {
      Json.parse(json).fields().forEachRemaining(each -> add(kinds, each.getKey(), each.getValue().asText()));
    }
    return new ColumnKinds(Map.copyOf(kinds));
  }

  /** As a JSON object. */
  public String json() {
    ObjectNode json = Json.object();
    kinds.forEach((column, kind) -> json.put(column, kind.name()));
    return json.toString();
  }

  /** Those of some columns, by the names that cft_table_create has for kinds. */
  public static ColumnKinds of(Map<String, String> names) {
    Map<String, ColumnKind> kinds = new HashMap<>();
    names.forEach((column, kind) -> add(kinds, column, kind));
    return new ColumnKinds(Map.copyOf(kinds));
  }

  /** Refuses columns whose types are not those that the net has learned. */
  public void require(StructType table) {
    List<String> findings = new ArrayList<>();
    for (StructField field : table.fields()) {
      ColumnKind kind = kinds.get(field.name());
      if (kind == null || kind.takes(field.dataType())) continue;
      findings.add("column '" + field.name() + "' is of type " + field.dataType().catalogString()
          + ", and the net has learned it as " + kind.words() + ": " + kind.advice());
    }
    if (!findings.isEmpty()) throw new PreflightException(findings);
  }

  private static void add(Map<String, ColumnKind> kinds, String column, String kind) {
    ColumnKind.of(kind).ifPresent(known -> kinds.merge(column, known, ColumnKind::stricter));
  }
}
