// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.spark.ml.CaffeClassifier;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.SyncModes;
import cafetiere.spark.plan.SolverSettings;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.ml.param.IntParam;
import org.apache.spark.ml.param.Param;
import org.apache.spark.ml.param.Params;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The params are those of the table; a value that one cannot have is refused when it is set. */
@BothLines
class ParamsTest {
  private static final Map<String, JsonNode> TABLE = table("shared", "estimator");

  private final CaffeEstimator estimator = new CaffeEstimator();

  @Test
  void estimatorAndModelHaveTheParamsOfTheTable() {
    assertEquals(TABLE.keySet(), names(estimator));
    CaffeModel model = CaffeModel.ofWeights(new byte[0], Map.of());
    assertEquals(table("shared").keySet(), names(model));
    TABLE.forEach((name, row) -> {
      List<String> doc = words(row.path("doc"));
      assertEquals(String.join(" ", doc), estimator.getParam(name).doc());
      assertTrue(doc.get(doc.size() - 1).endsWith("."), name);
    });
  }

  @Test
  void gettersGiveTheDefaultsOfTheTable() {
    TABLE.forEach((name, row) -> {
      Object value = assertDoesNotThrow(
          () -> CaffeEstimator.class.getMethod("get" + capital(name)).invoke(estimator));
      if (row.path("default").isArray()) {
        assertArrayEquals(words(row.path("default")).toArray(), (Object[]) value, name);
      } else {
        assertEquals(row.path("default").asText(), value.toString(), name);
      }
    });
  }

  @Test
  void settersReturnTheObjectAsWhatItIs() {
    for (var method : CaffeEstimator.class.getMethods()) {
      if (method.getName().matches("set[A-Z].*") && TABLE.containsKey(param(method.getName()))) {
        assertEquals(CaffeEstimator.class, method.getReturnType(), method.toString());
      }
    }
    assertEquals("x", estimator.setNet("x").setSolver("y").getNet());
    assertEquals(3, CaffeModel.ofWeights(new byte[0], Map.of()).setBatchSize(3).getBatchSize());
  }

  @Test
  void numbersBelowTheLeastAreRefused() {
    TABLE.forEach((name, row) -> {
      if (!row.path("type").asText().matches("int|long")) return;
      long least = row.path("least").asLong();
      assertTrue(row.has("least"), name);
      assertDoesNotThrow(() -> set(name, least), name);
      for (long value : new long[] {least - 1, -3}) {
        assertEquals(name + " is " + value + ": set it to " + least + " or more",
            assertThrows(IllegalArgumentException.class, () -> set(name, value)).getMessage());
      }
    });
  }

  @Test
  void nullAndArraysOfOtherTypesAreRefusedByName() {
    TABLE.forEach((name, row) -> {
      if (!row.path("type").asText().matches("String(\\[])?|.*\\[]")) return;
      assertEquals(name + " is null: set it to a value, or clear it to have its default",
          assertThrows(IllegalArgumentException.class, () -> setAny(estimator, name, null)).getMessage());
    });
    CaffeClassifier classifier = new CaffeClassifier();
    for (String name : List.of("labelCol", "featuresCols", "layers", "thresholds", "optimizer")) {
      assertTrue(assertThrows(IllegalArgumentException.class, () -> setAny(classifier, name, null))
          .getMessage().startsWith(name + " is null: "), name);
    }
    assertEquals("layers is a long[]: set it to an array of int or double",
        assertThrows(IllegalArgumentException.class, () -> setAny(classifier, "layers", new long[] {2}))
            .getMessage());
  }

  @SuppressWarnings("unchecked")
  private static void setAny(Params params, String name, Object value) {
    params.set((Param<Object>) params.getParam(name), value);
  }

  @Test
  void otherWordsAreRefused() {
    TABLE.forEach((name, row) -> {
      if (!row.has("words")) return;
      List<String> words = choices(row);
      words.forEach(word -> assertDoesNotThrow(() -> set(name, word), name + " " + word));
      String message = assertThrows(
          IllegalArgumentException.class, () -> set(name, "averge")).getMessage();
      assertTrue(message.startsWith(name + " is \"averge\""), message);
      assertTrue(message.endsWith(": set it to one of \"" + String.join("\", \"", words) + "\""),
          message);
    });
  }

  @Test
  void theEngineTakesTheWordsThatAreAllowed() {
    List<String> modes = SyncModes.choices();
    assertTrue(modes.contains("") && modes.containsAll(SyncModes.withSurvivors()));
    assertEquals(3, SyncModes.ranks("allreduce", 3, 4));
    assertEquals(2, SyncModes.ranks("hierarchical", 3, 4));
    for (String word : modes) described(new CaffeEstimator().setSyncMode(word));
    List<String> histories = choices(TABLE.get("syncHistory"));
    for (String word : histories) {
      described(new CaffeEstimator().setSyncMode("average").setSyncHistory(word));
    }
    CaffeEstimator wrong = new CaffeEstimator().setSyncOptions("history: 'x'");
    String message = assertThrows(CafetiereException.class, () -> described(wrong)).getMessage();
    String others = String.join(", ", histories.subList(1, histories.size()));
    assertTrue(message.contains("it must be one of " + others), message);
  }

  /** What the library says is for fit to say; setters take what only the library could judge. */
  @Test
  @Timeout(value = 60, unit = TimeUnit.SECONDS)
  void settersWorkWhereTheLibraryDoesNotLoad(@TempDir Path dir) throws Exception {
    Path log = dir.resolve("log");
    int code = DriverProcess.start(WithoutLibrary.class, log, dir.toString()).waitFor();
    String output = DriverProcess.read(log);
    assertEquals(0, code, output);
    assertTrue(output.contains("set: average"), output);
    assertTrue(output.contains("told: "), output);
    assertTrue(output.contains(dir.resolve("libcafetiere.so").toString()), output);
    assertFalse(output.contains("UnsatisfiedLinkError"), output);
  }

  /** A driver that is told to take the library from a folder without one. */
  static final class WithoutLibrary {
    private WithoutLibrary() {}

    public static void main(String[] args) {
      System.setProperty("cafetiere.native.path", args[0]);
      CaffeEstimator estimator = new CaffeEstimator().setSyncMode("average");
      System.out.println("set: " + estimator.getSyncMode());
      try {
        estimator.setSolver(TestNets.SOLVER).transformSchema(new StructType());
      } catch (CafetiereException e) {
        System.out.println("told: " + e.getMessage());
      }
    }
  }

  private static Map<String, JsonNode> table(String... parts) {
    try (InputStream in = CaffeParams.class.getResourceAsStream("params.json")) {
      JsonNode table = Json.parse(new String(in.readAllBytes(), StandardCharsets.UTF_8));
      Map<String, JsonNode> rows = new TreeMap<>();
      for (String part : parts) {
        table.path(part).forEach(row -> rows.put(row.path("name").asText(), row));
      }
      return rows;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static TreeSet<String> names(Params stage) {
    TreeSet<String> names = new TreeSet<>();
    for (Param<?> param : stage.params()) names.add(param.name());
    return names;
  }

  private static List<String> choices(JsonNode row) {
    return row.path("words").isTextual() ? SyncModes.choices() : words(row.path("words"));
  }

  private static List<String> words(JsonNode array) {
    List<String> words = new ArrayList<>();
    array.forEach(word -> words.add(word.asText()));
    return words;
  }

  private static String capital(String name) {
    return Character.toUpperCase(name.charAt(0)) + name.substring(1);
  }

  private static String param(String setter) {
    return Character.toLowerCase(setter.charAt(3)) + setter.substring(4);
  }

  private static void described(CaffeEstimator estimator) {
    NetDescription.ofTraining(TestNets.SOLVER, TestNets.CLASSIFIER,
        SolverSettings.of(estimator, new Configuration()), false);
  }

  private void set(String name, Object value) {
    Param<Object> param = estimator.getParam(name);
    boolean isInt = param instanceof IntParam;
    estimator.set(param, isInt ? (Object) ((Long) value).intValue() : value);
  }
}
