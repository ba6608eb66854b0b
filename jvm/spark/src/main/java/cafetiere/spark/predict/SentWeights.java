// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import java.io.Serializable;
import java.lang.ref.WeakReference;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;

/**
 * The broadcast of a model's weights. Only the tables that were made with it keep it alive: when the
 * last of them is garbage Spark frees the broadcast, though the model may live on. It is made anew
 * for another context, since it ends with its own.
 */
public final class SentWeights implements Serializable {
  private static final long serialVersionUID = 1L;

  private transient WeakReference<SparkContext> context;
  private transient WeakReference<Broadcast<byte[]>> broadcast;

  /** The weights on the executors of a context. */
  public synchronized Broadcast<byte[]> to(SparkContext sc, byte[] weights) {
    Broadcast<byte[]> there = context != null && context.get() == sc ? broadcast.get() : null;
    if (there != null) return there;
    Broadcast<byte[]> made = JavaSparkContext.fromSparkContext(sc).broadcast(weights);
    context = new WeakReference<>(sc);
    broadcast = new WeakReference<>(made);
    return made;
  }
}
