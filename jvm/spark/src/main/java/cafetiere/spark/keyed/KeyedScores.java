// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.predict.BatchPredictor;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.predict.PredictionPlan;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Scores the rows of a partition, a key after another: its net comes before its rows. The task may end while
 * another thread of it, which feeds a worker, still asks for rows.
 */
final class KeyedScores implements Iterator<InternalRow> {
  private static final int BATCH = 256;
  private static final int IS_ROW = 1;
  private static final int CLASSES = 2;
  private static final int NET = 3;
  private static final int WEIGHTS = 4;
  private static final int ROW = 5;

  private final FeedSchema feed;
  private final KeyedNets.Outputs outputs;
  private final KeyGroups groups;
  private final int width; // of a row
  private final int[] ordinals;
  private final GenericInternalRow nothing; // what is added where there is no net
  private final List<UnsafeRow> batch = new ArrayList<>();
  private final JoinedRow joined = new JoinedRow();
  private int next;
  private OutputColumns columns;
  private BatchPredictor predictor; // of the key, null where it has no net
  private RowEncoder encoder;
  private boolean isEnded;
  private boolean closed;

  KeyedScores(FeedSchema feed, StructType schema, KeyedNets.Outputs outputs, KeyGroups groups) {
    this.feed = feed;
    this.outputs = outputs;
    this.groups = groups;
    this.width = schema.size();
    this.ordinals = feed.ordinals(schema);
    this.nothing = new GenericInternalRow(
        outputs.columns().of(List.of()).append(new StructType()).size());
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> close());
  }

  @Override
  public boolean hasNext() {
    while (next == batch.size() && !isEnded) fill();
    return next < batch.size();
  }

  @Override
  public InternalRow next() {
    if (!hasNext()) throw new NoSuchElementException("the partition has no more rows");
    InternalRow added = added(next);
    return joined.apply(batch.get(next++), added);
  }

  private synchronized InternalRow added(int row) {
    requireOpen();
    return predictor == null ? nothing : columns.row(predictor.outputs(row));
  }

  /** The next rows of one key, a batch at most. */
  private void fill() {
    batch.clear();
    next = 0;
    if (!groups.hasRow() && !nextNet()) return;
    for (; batch.size() < BATCH && groups.hasRow(); groups.advance()) {
      take(groups.row().getStruct(ROW, width));
    }
    compute();
  }

  private synchronized void take(UnsafeRow row) {
    requireOpen();
    if (predictor != null) encoder.add(row, ordinals);
    batch.add(row.copy());
  }

  private synchronized void compute() {
    requireOpen();
    if (predictor != null) encoder.flush();
  }

  /** Goes to the next key, whose net is opened if it has rows; false at the end. */
  private boolean nextNet() {
    closeNet();
    isEnded = !groups.nextKey();
    if (isEnded || groups.row().getBoolean(IS_ROW)) return !isEnded;
    UnsafeRow net = groups.row().copy();
    groups.advance();
    if (groups.hasRow()) open(net);
    return true;
  }

  private synchronized void open(UnsafeRow net) {
    requireOpen();
    List<String> classes = new ArrayList<>();
    ArrayData names = net.getArray(CLASSES);
    for (int i = 0; i < names.numElements(); i++) classes.add(names.getUTF8String(i).toString());
    columns = outputs.columns().of(classes);
    PredictionPlan plan = new PredictionPlan(
        net.getUTF8String(NET) + KeyedNets.TO_PREDICT, "", feed, outputs.blobs(), BATCH, 1,
        "float32", "");
    predictor = new BatchPredictor(plan.open(net.getBinary(WEIGHTS)), BATCH);
    encoder = new RowEncoder(feed, predictor::run, Long.MAX_VALUE);
  }

  private void requireOpen() {
    if (closed) throw new IllegalStateException("the task has ended: no more rows are computed");
  }

  private synchronized void close() {
    closed = true;
    closeNet();
  }

  private synchronized void closeNet() {
    if (encoder != null) encoder.close();
    if (predictor != null) predictor.close();
    encoder = null;
    predictor = null;
  }
}
