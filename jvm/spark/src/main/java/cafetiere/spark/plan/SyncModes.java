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
  private static final String RANK_SHARDS = "rank_shards";

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

  /** Whether each rank of a mode is one shard. */
  public static boolean hasShardPerRank(String mode) {
    return of(mode).path(RANK_SHARDS).asText().equals("one");
  }

  /** How many ranks of a mode, {@code most} at most, so many shards can be spread over. */
  public static int ranks(String mode, int most, int shards) {
    int ranks = most;
    if (of(mode).path(RANK_SHARDS).asText().equals("equal")) {
      while (shards % ranks != 0) ranks--;
    }
    return ranks;
  }

  /** When two trainings by a mode end with the same bits. */
  public static String promises(String mode) {
    return of(mode).path("promises").asText();
  }

  private static JsonNode of(String name) {
    for (JsonNode mode : table()) {
      if (name(mode).equals(name)) return mode;
    }
    throw new IllegalArgumentException("there is no sync mode \"" + name + "\"");
  }

  private static JsonNode table() {
    return Json.parse(Engine.syncModes());
  }

  private static String name(JsonNode mode) {
    return mode.path("name").asText();
  }
}
