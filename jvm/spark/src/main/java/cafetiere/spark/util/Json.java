// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Optional;

/** The options and answers of the engine, which are JSON. */
public final class Json {
  /** A net holds the values of its text columns, which may be many. */
  private static final StreamReadConstraints LIMITS =
      StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build();
  private static final ObjectMapper MAPPER =
      new ObjectMapper(JsonFactory.builder().streamReadConstraints(LIMITS).build());
  private static final int SHOWN = 200;

  private Json() {}

  public static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  public static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  /** An array of strings. */
  public static ArrayNode array(List<String> values) {
    ArrayNode array = array();
    values.forEach(array::add);
    return array;
  }

  /** Reads a text that may be cut off; nothing if it is not JSON as a whole. */
  public static Optional<JsonNode> read(String text) {
    try {
      return Optional.of(
          MAPPER.reader(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).readTree(text));
    } catch (JsonProcessingException e) {
      return Optional.empty();
    }
  }

  /** Reads what the engine wrote, or an event or a file of a saved model. */
  public static JsonNode parse(String json) {
    try {
      return MAPPER.readTree(json);
    } catch (JsonProcessingException e) {
      String begin = json.length() > SHOWN ? json.substring(0, SHOWN) + " ..." : json;
      throw new IllegalStateException("this is not the JSON that Cafetiere writes: " + begin, e);
    }
  }
}
