// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import cafetiere.spark.BothLines;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.util.kvstore.InMemoryStore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What the store of Spark's UI keeps of runs. */
@BothLines
class RunListenerTest {
  private static final String STEP = "{\"event\":\"progress\",\"step\":%d,\"max_iter\":100,"
      + "\"seconds\":%d}";

  private static final String KEYS = "{\"event\":\"keys\",\"keys\":40,\"tasks\":%d,\"of\":16,"
      + "\"seconds\":%d}";

  private final SparkConf conf = new SparkConf(false).set("spark.cafetiere.retainedRuns", "2");
  private final ElementTrackingStore store =
      new ElementTrackingStore(new InMemoryStore(), conf);
  private final RunListener listener = new RunListener(store, conf);

  @AfterEach
  void close() {
    store.close();
  }

  @Test
  void oldRunsGoWithTheirEventsUnlessTheyGoOn() {
    hear("long", 1, 0, RunRow.RUNNING);
    for (int i = 0; i < 5; i++) {
      hear("run" + i, 10 + i, 0, RunRow.RUNNING);
      hear("run" + i, 10 + i, 1, RunRow.ENDED);
    }
    assertEquals(List.of("run4", "long"), runs());
    assertEquals("", RunStore.events(store, "run3"));
    assertEquals(2, RunStore.events(store, "run4").lines().count());
    assertEquals(3, store.count(PartRow.class));

    hear("long", 50, 1, RunRow.ENDED);
    hear("newest", 60, 0, RunRow.RUNNING);
    assertEquals(List.of("newest", "run4"), runs());
  }

  @Test
  void timeLeftIsThatOfThePaceOfThisAttempt() {
    hear("run", 1, 0, RunRow.RUNNING, String.format(STEP, 10, 5));
    assertNull(RunStore.find(store, "run").secondsLeft());
    hear("run", 2, 1, RunRow.RUNNING, String.format(STEP, 30, 15));
    assertEquals(35, RunStore.find(store, "run").secondsLeft(), 1e-9);
    hear("run", 3, 2, RunRow.RUNNING, String.format(STEP, 20, 1));
    hear("run", 4, 3, RunRow.RUNNING, String.format(STEP, 40, 21));
    assertEquals(60, RunStore.find(store, "run").secondsLeft(), 1e-9);
    hear("run", 5, 4, RunRow.CANCELLED);
    assertNull(RunStore.find(store, "run").secondsLeft());
  }

  @Test
  void timeLeftOfKeysIsThatOfTheirTasks() {
    hear("run", 1, 0, RunRow.RUNNING, String.format(KEYS, 0, 2));
    assertNull(RunStore.find(store, "run").secondsLeft());
    hear("run", 2, 1, RunRow.RUNNING, String.format(KEYS, 4, 6));
    assertEquals(18, RunStore.find(store, "run").secondsLeft(), 1e-9);
    assertEquals(40, RunStore.find(store, "run").lastProgress().path("keys").asLong());
  }

  @Test
  void logsOfBeforeHaveNeitherOwnerNorState() {
    listener.onOtherEvent(new RunUpdate("old", "title", 0, 1, "", "", "why", null, null));
    RunRow row = RunStore.find(store, "old");
    assertEquals("", row.owner);
    assertEquals(RunRow.FAILED, row.state);
  }

  private List<String> runs() {
    return RunStore.runs(store).stream().map(row -> row.run).collect(Collectors.toList());
  }

  @Test
  void partsHaveTheSameDigitsInEveryLocale() {
    Locale before = Locale.getDefault();
    Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
    try {
      RunUpdate update = new RunUpdate("run", "title", 20, 1, "", "", "", "owner", RunRow.RUNNING);
      assertEquals("run/000000020", new PartRow(update).id);
    } finally {
      Locale.setDefault(before);
    }
  }

  private void hear(String run, long time, long part, String state) {
    hear(run, time, part, state, "{\"event\":\"log\"}");
  }

  private void hear(String run, long time, long part, String state, String event) {
    listener.onOtherEvent(
        new RunUpdate(run, "title", part, time, event + "\n", "", "", "owner", state));
  }
}
