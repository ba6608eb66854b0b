// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import java.util.Locale;
import org.apache.spark.util.kvstore.KVIndex;

/** Some of a run's events in the store of Spark's UI, which makes it by its fields. */
public final class PartRow {
  /** In the order of the run's parts. */
  @KVIndex
  public String id;
  public String events;

  /** For the store. */
  public PartRow() {}

  PartRow(RunUpdate update) {
    this.id = String.format(Locale.ROOT, "%s/%09d", update.run(), update.part());
    this.events = update.events();
  }
}
