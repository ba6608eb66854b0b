// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.spark.util.Sha256;
import java.io.Serializable;
import java.lang.ref.WeakReference;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;

/**
 * A model's weights as its tasks get them: a broadcast, and the hash that they are known by. Only the
 * tables that were made with the broadcast keep it alive: when the last of them is garbage Spark
 * frees it, though the model may live on. It is made anew for another context, since it ends with its
 * own.
 */
public final class SentWeights implements Serializable {
  private static final long serialVersionUID = 1L;

  private transient WeakReference<SparkContext> context;
  private transient WeakReference<Broadcast<byte[]>> broadcast;
  private transient String sha256;

  /** The weights on the executors of a context. */
  public synchronized Broadcast<byte[]> to(SparkContext sc, byte[] weights) {
    Broadcast<byte[]> there = context != null && context.get() == sc ? broadcast.get() : null;
    if (there != null) return there;
    Broadcast<byte[]> made = JavaSparkContext.fromSparkContext(sc).broadcast(weights);
    context = new WeakReference<>(sc);
    broadcast = new WeakReference<>(made);
    return made;
  }

  /** The SHA-256 of the weights, computed once; the same for equal weights of other models. */
  public synchronized String sha256(byte[] weights) {
    if (sha256 == null) sha256 = Sha256.of(weights);
    return sha256;
  }
}
