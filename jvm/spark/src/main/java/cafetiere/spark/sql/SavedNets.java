// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.Handle;
import cafetiere.core.score.Scorer;
import cafetiere.core.score.TableScorer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/**
 * The models that the queries of a process use: those asked for last, each once in memory.
 *
 * @param <S> what scores a row
 */
final class SavedNets<S extends Handle> {
  private static final int KEPT = 4;
  private static final SavedNets<Scorer> OF_PROCESS = new SavedNets<>(Scorer::share);
  private static final SavedNets<TableScorer> OF_TABLES = new SavedNets<>(TableScorer::share);

  private final UnaryOperator<S> share;
  private final Map<String, S> open = new LinkedHashMap<>(2 * KEPT, 0.75f, true);

  private SavedNets(UnaryOperator<S> share) {
    this.share = share;
  }

  static SavedNets<Scorer> ofProcess() {
    return OF_PROCESS;
  }

  static SavedNets<TableScorer> ofTables() {
    return OF_TABLES;
  }

  /**
   * A scorer for one thread, which the garbage collector closes; it outlives the one kept here under
   * {@code version}.
   */
  synchronized S scorer(String version, Supplier<S> opened) {
    S kept = open.computeIfAbsent(version, key -> opened.get());
    if (open.size() > KEPT) close(open.keySet().iterator().next());
    return share.apply(kept);
  }

  /** How many there are. */
  synchronized int size() {
    return open.size();
  }

  private void close(String version) {
    open.remove(version).close();
  }
}
