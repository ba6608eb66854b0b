// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.score.Scorer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/** The models that the queries of a process use: those asked for last, each once in memory. */
final class SavedNets {
  private static final int KEPT = 4;
  private static final SavedNets OF_PROCESS = new SavedNets();

  private final Map<String, Scorer> open = new LinkedHashMap<>(2 * KEPT, 0.75f, true);

  static SavedNets ofProcess() {
    return OF_PROCESS;
  }

  /** A scorer for one thread, which the garbage collector closes; it outlives the one kept here. */
  synchronized Scorer scorer(SavedNet net, Configuration conf) {
    Scorer kept = open.computeIfAbsent(net.version(conf), version -> net.open(conf));
    if (open.size() > KEPT) close(open.keySet().iterator().next());
    return kept.share();
  }

  /** How many there are. */
  synchronized int size() {
    return open.size();
  }

  private void close(String version) {
    open.remove(version).close();
  }
}
