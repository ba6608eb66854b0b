// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.core.CafetiereException.Code;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Of several ranks' failures, the one that caused the others is told. */
class TaskOutcomeTest {
  private static final TaskOutcome GOOD = outcome(0, Code.OK, "");
  private static final TaskOutcome CANCELLED = outcome(1, Code.CANCELLED, "rank 0 was cancelled");
  private static final TaskOutcome FULL = outcome(2, Code.IO, "No space left on device");

  private static TaskOutcome outcome(int rank, Code code, String message) {
    return TaskOutcome.failed(rank, "0", code, message);
  }

  /** One table for all engines. */
  @Test
  void whatMayPassIsTriedAgain() {
    Set<Code> mayPass =
        EnumSet.of(Code.IO, Code.UNAVAILABLE, Code.TIMEOUT, Code.OUT_OF_MEMORY, Code.CANCELLED);
    Set<Code> ofPeers = EnumSet.of(Code.UNAVAILABLE, Code.TIMEOUT, Code.CANCELLED);
    for (Code code : Code.values()) {
      boolean again = mayPass.contains(code);
      assertEquals(again, code.mayPass(), code.name());
      assertEquals(again, new CafetiereException(code, "").isRetryable(), code.name());
      assertEquals(code != Code.OK && !again, outcome(0, code, "").isPermanent(), code.name());
      assertEquals(ofPeers.contains(code), code.isOfPeer(), code.name());
    }
  }

  @Test
  void theCauseIsToldWhoeverComesFirst() {
    assertEquals(FULL, TaskOutcome.cause(List.of(GOOD, CANCELLED, FULL)).orElseThrow());
    assertEquals(FULL, TaskOutcome.cause(List.of(FULL, CANCELLED)).orElseThrow());
  }

  @Test
  void aLostPeerIsToldWhereNothingElseIsKnown() {
    assertEquals(CANCELLED, TaskOutcome.cause(List.of(GOOD, CANCELLED)).orElseThrow());
    assertTrue(TaskOutcome.cause(List.of(GOOD)).isEmpty());
  }
}
