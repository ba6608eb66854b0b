// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.core.Predictor;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.preprocess.Preprocessing;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Adds a net's outputs to the rows of a partition, in their order and a batch at a time. A predictor
 * is taken for the first row and given back after the last, or when the task ends before: perhaps
 * while another thread of it, which feeds a worker, still asks for rows.
 */
public final class PredictionIterator implements Iterator<Row> {
  private final PredictionPlan plan;
  private final PredictorPool.Key key;
  private final Supplier<Predictor> opened;
  private final Iterator<Row> input;
  private final List<Row> batch = new ArrayList<>();
  private int next;

  private BatchPredictor predictor;
  private UnaryOperator<Row> preprocessing;
  private RowEncoder encoder;
  private int[] ordinals;
  private int[] places; // of the rows of the batch in the predictor, null where each has its own
  private boolean closed;

  /** {@code opened} makes a predictor of the plan; it is asked if the executor has none yet. */
  public PredictionIterator(PredictionPlan plan, Supplier<Predictor> opened, Iterator<Row> input) {
    this.plan = plan;
    this.key = new PredictorPool.Key(plan, plan.threadsHere());
    this.opened = opened;
    this.input = input;
  }

  @Override
  public boolean hasNext() {
    if (next < batch.size()) return true;
    batch.clear();
    next = 0;
    while (batch.size() < plan.batch() && input.hasNext()) batch.add(input.next());
    if (batch.isEmpty()) {
      close();
    } else {
      compute();
    }
    return !batch.isEmpty();
  }

  @Override
  public Row next() {
    if (!hasNext()) throw new NoSuchElementException("the partition has no more rows");
    Row row = batch.get(next);
    float[][] outputs = outputs(places == null ? next : places[next]);
    next++;
    Object[] cells = new Object[row.size() + outputs.length + (plan.predict() ? 1 : 0)];
    int cell = 0;
    for (; cell < row.size(); cell++) cells[cell] = row.get(cell);
    for (float[] output : outputs) cells[cell++] = output;
    if (plan.predict() && outputs[0] != null) cells[cell] = Outputs.prediction(outputs[0]);
    return RowFactory.create(cells);
  }

  private synchronized void compute() {
    requireOpen();
    if (encoder == null) open();
    for (Row given : batch) {
      if (ordinals == null) {
        ordinals = plan.schema().ordinals(Preprocessing.schema(plan.preprocessor(), given.schema()));
      }
      encoder.add(preprocessing.apply(given), ordinals);
    }
    encoder.flush();
    places = encoder.places();
  }

  private void open() {
    if (TaskContext.get() != null) {
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> close());
    }
    requireOpen(); // a listener of a task that has ended is called at once
    predictor = PredictorPool.ofExecutor().take(key, opened);
    preprocessing = Preprocessing.function(plan.preprocessor());
    encoder = new RowEncoder(plan.schema(), predictor::run, Long.MAX_VALUE);
  }

  /** Nulls where the net cannot take the row, which is at -1 then. */
  private synchronized float[][] outputs(int row) {
    requireOpen();
    float[][] outputs = new float[predictor.outputs()][];
    if (row < 0) return outputs;
    for (int i = 0; i < outputs.length; i++) outputs[i] = predictor.output(i, row);
    return outputs;
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
