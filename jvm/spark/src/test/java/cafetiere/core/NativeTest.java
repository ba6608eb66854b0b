// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Whatever the library is asked for ends in a Java exception, not in the end of the JVM. */
class NativeTest {
  private long rows;

  @BeforeEach
  void makeRows() {
    NativeLibrary.load();
    String schema = "{\"columns\": [{\"name\": \"x\", \"type\": \"f32\"}], \"id\": \"\"}";
    rows = Native.rowsCreate(schema.getBytes(StandardCharsets.UTF_8), 0);
  }

  @AfterEach
  void destroyRows() {
    Native.rowsDestroy(rows);
  }

  @Test
  void sizesThatNoMemoryHoldsAreOutOfMemory() {
    assertThrows(OutOfMemoryError.class, () -> Native.roundsShared(0, -1));
    assertThrows(OutOfMemoryError.class, () -> Native.roundsShared(0, Long.MAX_VALUE));
    assertThrows(OutOfMemoryError.class, () -> Native.roundsShared(0, Long.MAX_VALUE / 16));
  }

  @Test
  void wrongSizesAreErrors() {
    assertTells("not so many rows", () -> Native.rowsKeys(rows, 1, 100));
    assertTells("not so many rows", () -> Native.rowsKeys(rows, 1, -1));
    assertTells("different lengths", () -> Native.treeSum(new byte[][] {new byte[8], new byte[4]}));
    assertTells("null", () -> Native.treeSum(new byte[][] {null}));
    assertTells("no direct buffer",
        () -> Native.predictorRun(0, 1, 0, 0, new ByteBuffer[] {ByteBuffer.allocate(4)}));
  }

  @Test
  void aNullHandleIsAnError() {
    assertTells("is NULL", () -> Native.roundsDescribe(0));
    assertTells("is NULL", () -> Native.rowsCount(0));
    assertTells("is NULL", () -> Native.groupAddress(0));
  }

  @Test
  void syncModesAreTheEnginesTable() {
    String modes = Engine.syncModes();
    assertTrue(modes.startsWith("[{") && modes.contains("\"name\":\"allreduce\""), modes);
    assertTrue(modes.contains("\"survivors\":true") && modes.contains("\"rounds\":true"), modes);
  }

  private static void assertTells(String words, Executable call) {
    CafetiereException e = assertThrows(CafetiereException.class, call);
    assertTrue(e.getMessage().contains(words), e.getMessage());
  }

  @Test
  void noRowsHaveNoKeys() {
    assertEquals(0, Native.rowsKeys(rows, 1, 0).length);
  }
}
