// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.List;
import scala.collection.immutable.Nil$;

/** Shows the runs of an event log in the History Server that has this jar. */
public final class RunHistory implements AppHistoryServerPlugin, Listeners212 {
  @Override
  @SuppressWarnings({"unchecked", "rawtypes"})
  public scala.collection.immutable.Seq<SparkListener> createListeners(
      SparkConf conf, ElementTrackingStore store) {
    return new $colon$colon<SparkListener>(new RunListener(store, conf), (List) Nil$.MODULE$);
  }

  @Override
  public void setupUI(SparkUI ui) {
    if (!RunStore.runs(ui.store().store()).isEmpty()) RunTab.addTo(ui);
  }

  @Override
  public int displayOrder() {
    return 100;
  }
}
