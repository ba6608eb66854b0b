// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.core.Predictor;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.preprocess.Preprocessing;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Adds a net's outputs to the rows of a partition, in their order and a batch at a time. A predictor
 * is taken for the first row and given back after the last, or when the task ends before: perhaps
 * while another thread of it, which feeds a worker, still asks for rows.
 */
public final class PredictionIterator implements Iterator<InternalRow> {
  private final PredictionPlan plan;
  private final OutputColumns columns;
  private final PredictorPool.Key key;
  private final Supplier<Predictor> opened;
  private final Iterator<InternalRow> input;
  private final int[] ordinals;
  private final UnsafeProjection binary;
  private final UnaryOperator<UnsafeRow> preprocessing;
  private final List<UnsafeRow> batch = new ArrayList<>();
  private final JoinedRow joined = new JoinedRow();
  private int next;

  private BatchPredictor predictor;
  private RowEncoder encoder;
  private int[] places; // of the rows of the batch in the predictor, null where each has its own
  private boolean closed;

  /**
   * {@code opened} makes a predictor of the plan; it is asked if the executor has none yet.
   *
   * @param columns what is added to the rows
   * @param schema of the rows that are given
   */
  public PredictionIterator(PredictionPlan plan, OutputColumns columns,
      Supplier<Predictor> opened, StructType schema, Iterator<InternalRow> input) {
    this.plan = plan;
    this.columns = columns;
    this.key = new PredictorPool.Key(plan, plan.threadsHere());
    this.opened = opened;
    this.input = input;
    StructType made = Preprocessing.schema(plan.preprocessor(), schema);
    this.ordinals = plan.schema().ordinals(made);
    this.preprocessing = Preprocessing.ofBinary(plan.preprocessor(), schema, made);
    this.binary = SparkInternals.unsafeProjection(schema);
  }

  @Override
  public boolean hasNext() {
    if (next < batch.size()) return true;
    batch.clear();
    next = 0;
    while (batch.size() < plan.batch() && input.hasNext()) take(binary.apply(input.next()));
    if (batch.isEmpty()) {
      close();
    } else {
      compute();
    }
    return !batch.isEmpty();
  }

  @Override
  public InternalRow next() {
    if (!hasNext()) throw new NoSuchElementException("the partition has no more rows");
    InternalRow outputs = outputs(places == null ? next : places[next]);
    return joined.apply(batch.get(next++), outputs);
  }

  /** Encodes a row for the net, and keeps a copy of it for what comes out. */
  private synchronized void take(UnsafeRow row) {
    requireOpen();
    if (encoder == null) open();
    encoder.add(preprocessing.apply(row), ordinals);
    batch.add(row.copy());
  }

  private synchronized void compute() {
    requireOpen();
    encoder.flush();
    places = encoder.places();
  }

  private void open() {
    if (TaskContext.get() != null) {
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> close());
    }
    requireOpen(); // a listener of a task that has ended is called at once
    predictor = PredictorPool.ofExecutor().take(key, opened);
    encoder = new RowEncoder(plan.schema(), predictor::run, Long.MAX_VALUE);
  }

  private synchronized InternalRow outputs(int row) {
    requireOpen();
    return columns.row(row < 0 ? null : predictor.outputs(row));
  }

  private void requireOpen() {
    if (closed) throw new IllegalStateException("the task has ended: no more rows are computed");
  }

  private synchronized void close() {
    closed = true;
    if (encoder != null) encoder.close();
    if (predictor != null) PredictorPool.ofExecutor().give(key, predictor);
    predictor = null;
    encoder = null;
  }
}
