// SPDX-License-Identifier: Apache-2.0
package cafetiere.jcaffe;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Options of the engine. */
public final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** An object of names and values in turn. */
  public static String object(Object... namesAndValues) {
    ObjectNode node = MAPPER.createObjectNode();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      node.set((String) namesAndValues[i], MAPPER.valueToTree(namesAndValues[i + 1]));
    }
    return node.toString();
  }

  /** An array. */
  public static String array(Object[] values) {
    return MAPPER.valueToTree(values).toString();
  }
}
