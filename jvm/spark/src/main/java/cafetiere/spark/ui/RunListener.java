// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.status.ElementTrackingStore;

/** Puts what is heard of runs into the store of Spark's UI, live and in replay. */
final class RunListener extends SparkListener {
  private final ElementTrackingStore store;

  RunListener(ElementTrackingStore store) {
    this.store = store;
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    if (!(event instanceof RunUpdate update)) return;
    store.write(new RunRow(update, RunStore.find(store, update.run())));
    if (!update.events().isEmpty()) store.write(new PartRow(update));
  }
}
