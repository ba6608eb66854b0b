// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.SparkContext;
import org.apache.spark.util.kvstore.KVStore;
import org.apache.spark.util.kvstore.KVStoreIterator;
import org.apache.spark.util.kvstore.KVStoreView;

/** What the store of Spark's UI knows of runs. */
public final class RunStore {
  private RunStore() {}

  /** All runs, the newest first. */
  static List<RunRow> runs(KVStore store) {
    List<RunRow> runs = all(view(store, RunRow.class));
    runs.sort(Comparator.comparingLong((RunRow row) -> row.started).reversed());
    return runs;
  }

  /** A run; null if there is none of this id. */
  static RunRow find(KVStore store, String run) {
    try {
      return store.read(RunRow.class, run);
    } catch (NoSuchElementException e) {
      return null;
    } catch (Exception e) {
      throw new IllegalStateException("cannot read run " + run + " from the UI's store", e);
    }
  }

  /** A run's events, one JSON object a line. */
  static String events(KVStore store, String run) {
    StringBuilder text = new StringBuilder();
    parts(store, run).forEach(part -> text.append(part.events));
    return text.toString();
  }

  /** Takes out the oldest runs that have ended, until there are so many; those that go on stay. */
  static void retain(KVStore store, int most) {
    List<RunRow> runs = runs(store);
    int excess = runs.size() - most;
    for (int i = runs.size() - 1; i >= 0 && excess > 0; i--) {
      if (runs.get(i).isRunning()) continue;
      remove(store, runs.get(i).run);
      excess--;
    }
  }

  private static void remove(KVStore store, String run) {
    try {
      for (PartRow part : parts(store, run)) store.delete(PartRow.class, part.id);
      store.delete(RunRow.class, run);
    } catch (Exception e) {
      throw new IllegalStateException("cannot take run " + run + " out of the UI's store", e);
    }
  }

  private static List<PartRow> parts(KVStore store, String run) {
    return all(view(store, PartRow.class).first(run + "/").last(run + "/~"));
  }

  /**
   * All runs, for a program that polls: a JSON array of {@code {"run", "title", "running",
   * "progress", "test"}}, with the newest events of progress (of steps or of keys) and of a test.
   */
  public static String told(SparkContext sc) {
    KVStore store = sc.statusStore().store();
    ArrayNode told = Json.array();
    for (RunRow row : runs(store)) {
      ObjectNode run = told.addObject().put("run", row.run).put("title", row.title);
      run.put("running", row.isRunning());
      if (!row.progress.isEmpty()) run.set("progress", Json.parse(row.progress));
      if (!row.test.isEmpty()) run.set("test", Json.parse(row.test));
    }
    return told.toString();
  }

  private static <T> KVStoreView<T> view(KVStore store, Class<T> kind) {
    try {
      return store.view(kind);
    } catch (Exception e) {
      throw new IllegalStateException("cannot read the UI's store", e);
    }
  }

  private static <T> List<T> all(KVStoreView<T> view) {
    List<T> rows = new ArrayList<>();
    try (KVStoreIterator<T> iterator = view.closeableIterator()) {
      iterator.forEachRemaining(rows::add);
    } catch (Exception e) {
      throw new IllegalStateException("cannot read the UI's store", e);
    }
    return rows;
  }
}
