// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class RetryPolicyTest {
  private final RetryPolicy policy = new RetryPolicy();

  @Test
  void goesOnForEverWhileTheStepAdvances() {
    for (int step = 0; step < 1000; step++) {
      assertTrue(policy.retryAfter(step, "executor lost"));
    }
  }

  @Test
  void stopsWhenTheSameStepFailsTwiceWithTheSameWords() {
    assertTrue(policy.retryAfter(0, "executor 1 lost"));
    assertFalse(policy.retryAfter(0, "executor 1 lost"));
  }

  @Test
  void otherWordsBuyOneMoreAttempt() {
    assertTrue(policy.retryAfter(40, "executor 1 lost"));
    assertTrue(policy.retryAfter(40, "executor 2 lost"));
    assertFalse(policy.retryAfter(40, "executor 3 lost"));
  }

  @Test
  void progressClearsTheCount() {
    assertTrue(policy.retryAfter(40, "a"));
    assertTrue(policy.retryAfter(40, "b"));
    assertTrue(policy.retryAfter(60, "b"));
    assertTrue(policy.retryAfter(60, "c"));
  }

  @Test
  void aCheckpointThatWentBadIsNoProgress() {
    assertTrue(policy.retryAfter(60, "a"));
    assertTrue(policy.retryAfter(40, "b"));
    assertFalse(policy.retryAfter(40, "c"));
  }
}
