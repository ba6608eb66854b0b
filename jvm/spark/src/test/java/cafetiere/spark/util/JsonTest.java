// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class JsonTest {
  @Test
  void aNetMayBeLongerThanJacksonsLimit() {
    String net = "x".repeat(21_000_000);
    assertEquals(net, Json.parse("{\"net\":\"" + net + "\"}").path("net").asText());
  }

  @Test
  void whatIsNoJsonIsQuotedInPart() {
    String told = assertThrows(IllegalStateException.class, () -> Json.parse("x".repeat(10_000))).getMessage();
    assertTrue(told.length() < 300, told);
  }
}
