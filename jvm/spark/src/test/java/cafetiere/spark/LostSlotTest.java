// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.util.Json;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** An executor that does not come back: the training goes on without it. */
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class LostSlotTest {
  private static final int ROWS = 1_007;
  private static final String SLOT_WAIT = "spark.cafetiere.slotWait";

  @TempDir Path dir;

  /** Here another number of ranks is another number of shards. */
  @Test
  void aModeOfOneShardPerRankGoesOnWithFewerRanks() throws Exception {
    SparkContext sc = TestImages.session().sparkContext();
    String victim = TestImages.executors(TestImages.session()).keySet().iterator().next();
    sc.conf().set(SLOT_WAIT, "1s");
    CompletableFuture<Boolean> killed = CompletableFuture.supplyAsync(() -> {
      KillTest.awaitCheckpoint(dir);
      return sc.killExecutor(victim);  // and none comes in its place
    });
    try {
      CaffeModel model = KillTest.estimator(dir).setSyncMode("easgd")
          .fit(TestImages.images(TestImages.session(), ROWS));
      assertTrue(killed.get(), "the executor was gone before it was killed");
      assertEquals(1, Json.parse(model.result()).path("ranks").asInt(), model.result());
      assertTrue(model.events().contains("goes on with 1 of 2 ranks, as the cluster has no more slots;"
          + " each rank is one shard, so the weights will differ"), model.events());
    } finally {
      sc.stop();  // who comes next has a cluster with all executors
    }
  }
}
