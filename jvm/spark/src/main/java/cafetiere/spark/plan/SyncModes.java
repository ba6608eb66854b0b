// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.core.CafetiereException;
import cafetiere.core.Engine;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** The engine's table of sync modes. */
public final class SyncModes {
  private SyncModes() {}

  /**
   * What the param syncMode may be: a mode, or "" for the solver's. Empty where the native library
   * does not load: a setter is no place to say so, and fit says it.
   */
  public static List<String> choices() {
    try {
      List<String> choices = new ArrayList<>(List.of(""));
      for (JsonNode mode : table()) choices.add(name(mode));
      return choices;
    } catch (CafetiereException e) {
      return List.of();
    }
  }

  /** Those whose ranks may come and go. */
  public static List<String> withSurvivors() {
    List<String> modes = new ArrayList<>();
    for (JsonNode mode : table()) {
      if (mode.path("survivors").asBoolean()) modes.add(name(mode));
    }
    return modes;
  }

  private static JsonNode table() {
    return Json.parse(Engine.syncModes());
  }

  private static String name(JsonNode mode) {
    return mode.path("name").asText();
  }
}
