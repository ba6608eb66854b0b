// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.status.ElementTrackingStore;

/** Puts what is heard of runs into the store of Spark's UI, live and in replay; old runs go. */
final class RunListener extends SparkListener {
  private static final String RETAINED = "spark.cafetiere.retainedRuns";

  private final ElementTrackingStore store;
  private final int retained;

  RunListener(ElementTrackingStore store, SparkConf conf) {
    this.store = store;
    this.retained = conf.getInt(RETAINED, 100);
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    if (!(event instanceof RunUpdate update)) return;
    RunRow before = RunStore.find(store, update.run());
    store.write(new RunRow(update, before));
    if (!update.events().isEmpty()) store.write(new PartRow(update));
    if (before == null) RunStore.retain(store, retained);
  }
}
