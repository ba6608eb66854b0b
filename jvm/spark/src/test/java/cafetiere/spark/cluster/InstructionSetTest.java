// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class InstructionSetTest {
  @Test
  void theLowestWins() {
    assertEquals("avx2", InstructionSet.lowest(List.of("avx512", "avx2", "avx512")));
    assertEquals("avx", InstructionSet.lowest(List.of("avx", "avx2")));
    assertEquals("generic", InstructionSet.lowest(List.of("avx512", "generic")));
    assertEquals("avx512_bf16", InstructionSet.lowest(List.of("amx", "avx512_bf16")));
    assertEquals("avx512", InstructionSet.lowest(List.of("avx512_bf16", "avx512", "amx")));
  }

  @Test
  void theEngineKnowsItsOwn() {
    assertDoesNotThrow(() -> InstructionSet.use(InstructionSet.here()));
  }

  @Test
  void anUnknownOneIsRefused() {
    String message = assertThrows(IllegalArgumentException.class,
        () -> InstructionSet.lowest(List.of("avx2", "sse9"))).getMessage();
    assertTrue(message.startsWith("'sse9' is no instruction set"), message);
  }
}
