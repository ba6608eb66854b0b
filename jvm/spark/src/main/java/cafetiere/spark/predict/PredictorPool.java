// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.core.Predictor;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * The predictors of an executor: a task takes one for its partition and gives it back for the next
 * one. Those of the same plan share their weights. There are never more, in use or not, than tasks
 * have had at one time, and those that nobody has taken for a while are closed.
 */
final class PredictorPool {
  private static final PredictorPool OF_EXECUTOR =
      new PredictorPool(Duration.ofMinutes(1), System::nanoTime);

  /** What predictors have in common that may stand for each other. */
  record Key(PredictionPlan plan, int threads) {}

  private record Idle(Key key, BatchPredictor predictor, long since) {}

  private final long keptNanos;
  private final LongSupplier clock;
  private final Map<Key, Set<BatchPredictor>> open = new HashMap<>();
  private final Deque<Idle> idle = new ArrayDeque<>(); // the longest unused one first
  private int used;
  private int mostUsed;
  private boolean closingIsPlanned;

  /** `clock` tells nanoseconds from any beginning. */
  PredictorPool(Duration kept, LongSupplier clock) {
    this.keptNanos = kept.toNanos();
    this.clock = clock;
  }

  static PredictorPool ofExecutor() {
    return OF_EXECUTOR;
  }

  /** A predictor that has seen no rows; `opened` makes one where there is none of `key`. */
  synchronized BatchPredictor take(Key key, Supplier<Predictor> opened) {
    BatchPredictor taken = takeIdle(key);
    if (taken == null) {
      while (!idle.isEmpty() && used + idle.size() >= mostUsed) close(idle.pollFirst());
      Set<BatchPredictor> others = open.getOrDefault(key, Set.of());
      taken = others.isEmpty()
          ? new BatchPredictor(opened.get(), key.plan().batch())
          : others.iterator().next().share();
      open.computeIfAbsent(key, same -> new LinkedHashSet<>()).add(taken);
    }
    used++;
    mostUsed = Math.max(mostUsed, used);
    return taken;
  }

  /** Takes back what take() gave; nobody may use it any more. */
  synchronized void give(Key key, BatchPredictor predictor) {
    predictor.reset();
    used--;
    idle.addLast(new Idle(key, predictor, clock.getAsLong()));
    planClosing(keptNanos);
  }

  /** Closes those that nobody has taken for a while. */
  synchronized void closeUnused() {
    closingIsPlanned = false;
    long now = clock.getAsLong();
    while (!idle.isEmpty() && now - idle.peekFirst().since() >= keptNanos) {
      close(idle.pollFirst());
    }
    if (!idle.isEmpty()) planClosing(idle.peekFirst().since() + keptNanos - now);
  }

  /** How many there are, in use or not. */
  synchronized int size() {
    return open.values().stream().mapToInt(Collection::size).sum();
  }

  /** The one used last, whose memory is the likeliest to be in a cache. */
  private BatchPredictor takeIdle(Key key) {
    for (Iterator<Idle> last = idle.descendingIterator(); last.hasNext(); ) {
      Idle one = last.next();
      if (one.key().equals(key)) {
        last.remove();
        return one.predictor();
      }
    }
    return null;
  }

  private void planClosing(long nanos) {
    if (closingIsPlanned) return;
    closingIsPlanned = true;
    CompletableFuture.delayedExecutor(nanos, TimeUnit.NANOSECONDS).execute(this::closeUnused);
  }

  private void close(Idle one) {
    Set<BatchPredictor> same = open.get(one.key());
    same.remove(one.predictor());
    if (same.isEmpty()) open.remove(one.key());
    one.predictor().close();
  }
}
