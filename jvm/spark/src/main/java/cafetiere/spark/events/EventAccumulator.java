// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.util.AccumulatorV2;

/**
 * The last events of rank 0 as an accumulator: the way to the driver that needs no connection, as
 * Spark's heartbeats carry it. It is bounded, since every heartbeat carries the whole of it.
 */
final class EventAccumulator extends AccumulatorV2<RunEvent, List<RunEvent>> {
  static final int KEPT = 256;

  private static final long serialVersionUID = 1L;

  private final ArrayDeque<RunEvent> events = new ArrayDeque<>();

  @Override
  public synchronized boolean isZero() {
    return events.isEmpty();
  }

  @Override
  public synchronized AccumulatorV2<RunEvent, List<RunEvent>> copy() {
    EventAccumulator copy = new EventAccumulator();
    copy.events.addAll(events);
    return copy;
  }

  @Override
  public synchronized void reset() {
    events.clear();
  }

  @Override
  public synchronized void add(RunEvent event) {
    if (events.size() == KEPT) events.removeFirst();
    events.addLast(event);
  }

  @Override
  public void merge(AccumulatorV2<RunEvent, List<RunEvent>> other) {
    for (RunEvent event : other.value()) add(event);
  }

  @Override
  public synchronized List<RunEvent> value() {
    return new ArrayList<>(events);
  }
}
