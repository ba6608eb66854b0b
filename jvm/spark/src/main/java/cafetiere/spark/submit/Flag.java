// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import cafetiere.spark.CaffeParams;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.ml.param.DoubleParam;
import org.apache.spark.ml.param.IntParam;
import org.apache.spark.ml.param.LongParam;
import org.apache.spark.ml.param.Param;
import org.apache.spark.ml.param.Params;

/**
 * A flag of the command line. Those of Params come from the table, params.json.
 *
 * @param name without the dash
 * @param value what -help calls its value; "" for a switch
 * @param text what it says, in sentences
 * @param param the Param that it sets; "" for none
 */
record Flag(String name, String value, String text, String param) {
  private static final String FILE = "FILE";
  private static final int INDENT = 26;

  /** A flag that is no Param. */
  static Flag of(String name, String value, String text) {
    return new Flag(name, value, text, "");
  }

  /** The flags of the Params, in the table's order. */
  static List<Flag> ofParams() {
    JsonNode table;
    try (InputStream in = CaffeParams.class.getResourceAsStream("params.json")) {
      table = Json.parse(new String(in.readAllBytes(), StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    List<Flag> flags = new ArrayList<>();
    for (JsonNode part : table) {
      for (JsonNode param : part) {
        String name = param.path("flag").asText(param.path("name").asText());
        List<String> text = new ArrayList<>();
        param.path("doc").forEach(line -> text.add(line.asText()));
        Flag flag = new Flag(
            name, placeholder(param), String.join(" ", text), param.path("name").asText());
        if (!name.isEmpty()) flags.add(flag);
      }
    }
    return flags;
  }

  boolean isSwitch() {
    return value.isEmpty();
  }

  /** The flag and, beside it, what it says. */
  String help() {
    String head = "  -" + name + " " + value;
    String lines = text.replaceAll("(.{1,74})( |$)", " ".repeat(INDENT) + "$1\n");
    return head + (head.length() < INDENT ? lines.substring(head.length()) : "\n" + lines);
  }

  /** Sets the Param of this flag, where {@code stage} has it. */
  void set(Params stage, String given) {
    if (param.isEmpty() || !stage.hasParam(param)) return;
    Param<Object> target = stage.getParam(param);
    try {
      stage.set(target, parsed(target, given));
    } catch (NumberFormatException e) {
      if (target instanceof DoubleParam) {
        throw new Flags.UsageException("-" + name + " " + given + ": a number is needed");
      }
      boolean isLarge = target instanceof IntParam && given.matches("\\d+");
      throw new Flags.UsageException("-" + name + " " + given + ": a whole number is needed"
          + (isLarge ? ", at most " + Integer.MAX_VALUE : ""));
    } catch (IllegalArgumentException e) {
      throw new Flags.UsageException("-" + name + " " + given + ": " + e.getMessage());
    }
  }

  private Object parsed(Param<?> target, String given) {
    if (isSwitch()) return Boolean.valueOf(given);
    if (target instanceof IntParam) return Integer.valueOf(given);
    if (target instanceof LongParam) return Long.valueOf(given);
    if (target instanceof DoubleParam) return Double.valueOf(given);
    return value.equals(FILE) ? located(given) : given;
  }

  /** Files that spark-submit put beside the driver are local, whatever the default file system. */
  private static String located(String paths) {
    return Stream.of(paths.split(","))
        .map(path -> Files.exists(Path.of(path)) ? HadoopFiles.ofLocal(Path.of(path)) : path)
        .collect(Collectors.joining(","));
  }

  private static String placeholder(JsonNode param) {
    if (param.path("file").asBoolean()) return FILE;
    return switch (param.path("type").asText()) {
      case "boolean" -> "";
      case "int", "long", "double" -> "N";
      default -> param.has("words") ? "WORD" : "TEXT";
    };
  }
}
