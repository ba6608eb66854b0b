// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import cafetiere.spark.internal.SparkInternals;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.status.ElementTrackingStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells Spark's listeners of a run, and so the tab and the event log. Events are gathered for a second,
 * of a long run for a five-hundredth of its time, so that a log stays short.
 */
public final class RunBoard implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RunBoard.class);
  /** Applications that have the tab: a process may have one after another. */
  private static final Set<SparkContext> ATTACHED =
      Collections.newSetFromMap(new WeakHashMap<>());
  private static final long SECOND = 1_000;
  private static final long PARTS = 500;

  private final SparkContext sc;
  private final String run;
  private final String title;
  private final String owner;
  private final long started = System.currentTimeMillis();
  private final StringBuilder events = new StringBuilder();
  private long posted;
  private long parts;
  private String result = "";
  private String failure = "";
  private String state = RunRow.RUNNING;

  /** A run of the estimator {@code owner} begins. The first one of an application adds the tab. */
  public RunBoard(SparkContext sc, String run, String title, String owner) {
    this.sc = sc;
    this.run = run;
    this.title = title;
    this.owner = owner;
    attach(sc);
    post();
  }

  /** Takes an event of the run. */
  public synchronized void tell(JsonNode event) {
    events.append(event).append('\n');
    long now = System.currentTimeMillis();
    if (now - posted >= Math.max(SECOND, (now - started) / PARTS)) post();
  }

  /** The run has ended well, with a summary in JSON. */
  public synchronized void end(String summary) {
    result = summary;
    state = RunRow.ENDED;
  }

  /** The run has ended otherwise. */
  public synchronized void fail(Throwable why) {
    failure = why.getMessage() == null ? why.getClass().getSimpleName() : why.getMessage();
    state = isCancelled(why) ? RunRow.CANCELLED : RunRow.FAILED;
  }

  @Override
  public synchronized void close() {
    if (state.equals(RunRow.RUNNING)) fail(new IllegalStateException("ended without a word"));
    post();
  }

  private static boolean isCancelled(Throwable why) {
    if (why instanceof InterruptedException || SparkInternals.isCancelled(why)) return true;
    return why.getCause() != null && isCancelled(why.getCause());
  }

  private void post() {
    posted = System.currentTimeMillis();
    sc.listenerBus().post(
        new RunUpdate(run, title, parts++, posted, events.toString(), result, failure, owner,
            state));
    events.setLength(0);
  }

  /** Once for each application. What fails here is told in the log: no run depends on it. */
  private static synchronized void attach(SparkContext sc) {
    if (!ATTACHED.add(sc)) return;
    try {
      ElementTrackingStore store = (ElementTrackingStore) sc.statusStore().store();
      sc.listenerBus().addToStatusQueue(new RunListener(store, sc.getConf()));
      if (sc.ui().isDefined()) RunTab.addTo(sc.ui().get());
    } catch (RuntimeException | LinkageError e) {
      LOG.warn("The runs will not be seen in Spark's UI: {}", e.toString());
    }
  }
}
