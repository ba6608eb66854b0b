// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.kinds;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Engine;
import cafetiere.spark.PreflightException;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
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
  private static final int OCTAL = 8;
  private static final int OCTAL_DIGITS = 3;

  /** Those that a net's TableData layers name. */
  public static ColumnKinds ofNet(String net) {
    String options = Json.object().put("phase", "TEST").put("net", net).toString();
    return ofText(Json.parse(Engine.describe(options)).path("net_text").asText());
  }

  /** The same of the text that the engine writes of a net, which has one field in each line. */
  public static ColumnKinds ofText(String text) {
    Map<String, ColumnKind> kinds = new HashMap<>();
    Map<String, ColumnKind> ofTop = new HashMap<>();
    boolean isColumn = false;
    String name = "";
    String kind = "";
    for (Iterator<String> lines = text.lines().iterator(); lines.hasNext();) {
      String line = lines.next().strip();
      if (line.equals("column {")) {
        isColumn = true;
        kind = ColumnKind.NUMBER.name();
      } else if (isColumn && line.startsWith("name: ")) {
        name = unescaped(line.substring("name: \"".length(), line.length() - 1));
      } else if (isColumn && line.startsWith("kind: ")) {
        kind = line.substring("kind: ".length());
      } else if (isColumn && line.equals("}")) {
        isColumn = false;
        add(ofTop, name, kind);
      } else if (line.equals("target: true")) {
        ofTop.clear(); // it stands behind the columns of its top, which rows to score need not have
      } else if (line.equals("}")) {
        ofTop.forEach((column, its) -> kinds.merge(column, its, ColumnKind::stricter));
        ofTop.clear();
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

  /** A string as protobuf prints it, where bytes that are not ASCII are octal. */
  private static String unescaped(String printed) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    for (int i = 0; i < printed.length(); i++) {
      char c = printed.charAt(i);
      if (c == '\\') {
        c = printed.charAt(++i);
        if (Character.digit(c, OCTAL) >= 0) {
          c = (char) Integer.parseInt(printed.substring(i, i + OCTAL_DIGITS), OCTAL);
          i += OCTAL_DIGITS - 1;
        } else {
          c = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
        }
      }
      bytes.write(c);
    }
    return bytes.toString(UTF_8);
  }
}
