// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.core.CafetiereException.Code;
import cafetiere.core.Rounds;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * What the task of a shard, or those of several, hand back. It travels as bytes, since a user may
 * have chosen any serializer for results.
 *
 * @param shards one object a shard: "executor", "code", "message", and what the engine reports
 * @param floats what came out, added up over the shards
 */
record RoundsOutcome(ArrayNode shards, byte[] floats) {
  /** Of one shard that did its part. */
  static RoundsOutcome of(ObjectNode report, byte[] floats) {
    return new RoundsOutcome(Json.array().add(report.put("code", Code.OK.name())), floats);
  }

  /** Of one shard that cannot do its part: another attempt would fail in the same way. */
  static RoundsOutcome failed(ObjectNode report, Code code, String message) {
    report.put("code", code.name()).put("message", message);
    return new RoundsOutcome(Json.array().add(report), new byte[0]);
  }

  /** Of a group of consecutive shards in their order. */
  static RoundsOutcome sum(List<RoundsOutcome> group) {
    ArrayNode all = Json.array();
    group.forEach(outcome -> all.addAll(outcome.shards));
    boolean good = group.stream().allMatch(RoundsOutcome::isGood);
    byte[] sum = good ? Rounds.treeSum(group.stream().map(RoundsOutcome::floats).toList())
        : new byte[0];
    return new RoundsOutcome(all, sum);
  }

  boolean isGood() {
    for (JsonNode shard : shards) {
      if (!shard.path("code").asText().equals(Code.OK.name())) return false;
    }
    return true;
  }

  byte[] toBytes() {
    byte[] text = shards.toString().getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(Integer.BYTES + text.length + floats.length)
        .putInt(text.length).put(text).put(floats).array();
  }

  static RoundsOutcome fromBytes(byte[] bytes) {
    ByteBuffer from = ByteBuffer.wrap(bytes);
    byte[] text = new byte[from.getInt()];
    byte[] floats = new byte[from.get(text).remaining()];
    from.get(floats);
    return new RoundsOutcome(
        (ArrayNode) Json.parse(new String(text, StandardCharsets.UTF_8)), floats);
  }
}
