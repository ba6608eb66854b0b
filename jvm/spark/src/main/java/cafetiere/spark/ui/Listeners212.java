// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.ElementTrackingStore;

/** What the History Server of Scala 2.12 calls: the compiler adds it to {@link RunHistory}. */
interface Listeners212 {
  scala.collection.Seq<SparkListener> createListeners(SparkConf conf, ElementTrackingStore store);
}
