// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.CafetiereException;
import cafetiere.core.table.KeyedTrainer;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.run.TaskWatch;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.Seconds;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.TaskCompletionListener;

/**
 * A partition's keys, each trained when its row is asked for. What is wrong with a key is in its row. The
 * task may end while another thread of it, which feeds a worker, still asks for rows.
 */
final class KeyedTask implements Iterator<InternalRow> {
  private final KeyGroups groups;
  private final KeyedTrainer trainer;
  private final RowEncoder encoder;
  private final int[] ordinals; // behind the key
  private final KeyedTally tally;
  private final TaskWatch watch;
  private boolean isThere; // a key that nobody has asked for yet
  private boolean isEnded;
  private boolean closed;

  KeyedTask(KeyedTraining training, StructType schema, Iterator<InternalRow> partition, KeyedTally tally) {
    this.tally = tally;
    this.ordinals = IntStream.range(1, schema.size()).toArray();
    this.trainer = new KeyedTrainer(training.options());
    this.encoder = new RowEncoder(training.rows(), trainer::add);
    this.watch = new TaskWatch(TaskContext.get(), trainer::cancel);
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> close());
    this.groups = new KeyGroups(schema, partition);
  }

  @Override
  public boolean hasNext() {
    if (!isThere && !isEnded) {
      isThere = groups.nextKey();
      isEnded = !isThere;
      if (isEnded) tally.tasks().add(1);
    }
    return isThere;
  }

  @Override
  public InternalRow next() {
    if (!hasNext()) throw new NoSuchElementException("the partition has no more keys");
    isThere = false;
    long rows = 0;
    String error = null;
    for (; groups.hasRow(); groups.advance(), rows++) {
      if (error == null) error = add(groups.row());
    }
    tally.keys().add(1);
    return error == null ? trained(rows) : failed(rows, error);
  }

  /** What is wrong with a row, null if nothing is. */
  private synchronized String add(UnsafeRow row) {
    requireOpen();
    try {
      encoder.add(row, ordinals);
      return null;
    } catch (CafetiereException e) {
      return e.getMessage();
    }
  }

  private synchronized InternalRow trained(long rows) {
    requireOpen();
    try {
      encoder.flush();
      long begun = System.nanoTime();
      KeyedTrainer.Net net = trainer.train();
      tally.seconds().add(Seconds.since(begun));
      return row(rows, null, net.loss(), classes(net), UTF8String.fromBytes(net.net()), net.weights());
    } catch (CafetiereException e) {
      if (e.code() == CafetiereException.Code.CANCELLED) throw e; // the task's end, not the key's fault
      return failed(rows, e.getMessage());
    }
  }

  private synchronized InternalRow failed(long rows, String error) {
    requireOpen();
    try {
      encoder.flush(); // of rows before the bad one
    } catch (CafetiereException e) {
      // The key has failed already, for what came first.
    }
    trainer.drop();
    return row(rows, UTF8String.fromString(error), null, null, null, null);
  }

  private InternalRow row(long rows, Object... cells) {
    Object[] all = new Object[cells.length + 2];
    all[0] = groups.key();
    all[1] = rows;
    System.arraycopy(cells, 0, all, 2, cells.length);
    return new GenericInternalRow(all);
  }

  private static GenericArrayData classes(KeyedTrainer.Net net) {
    List<UTF8String> classes = new ArrayList<>();
    for (JsonNode name : Json.parse(new String(net.classes(), UTF_8))) {
      classes.add(UTF8String.fromString(name.asText()));
    }
    return new GenericArrayData(classes.toArray());
  }

  private void requireOpen() {
    if (closed) throw new IllegalStateException("the task has ended: no more keys are trained");
  }

  private void close() {
    watch.close();
    trainer.cancel(); // what another thread is training would be waited for
    free();
  }

  private synchronized void free() {
    closed = true;
    encoder.close();
    trainer.close();
  }
}
