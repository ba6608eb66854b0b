// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.core.Predictor;
import cafetiere.spark.feed.RowEncoder;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Adds a net's outputs to the rows of a partition, in their order and a batch at a time. The native
 * objects are made for the first row and freed after the last, or when the task ends before.
 */
public final class PredictionIterator implements Iterator<Row> {
  private final PredictionPlan plan;
  private final Supplier<Predictor> opened;
  private final Iterator<Row> input;
  private final List<Row> batch = new ArrayList<>();
  private int next;

  private Predictor predictor;
  private RowEncoder encoder;
  private List<PredictionPlan.Output> outputs;
  private ByteBuffer[] values;
  private int[] ordinals;

  /** {@code opened} makes the plan's predictor, once. */
  public PredictionIterator(PredictionPlan plan, Supplier<Predictor> opened, Iterator<Row> input) {
    this.plan = plan;
    this.opened = opened;
    this.input = input;
  }

  @Override
  public boolean hasNext() {
    if (next < batch.size()) return true;
    batch.clear();
    next = 0;
    if (input.hasNext()) {
      compute();
    } else {
      close();
    }
    return !batch.isEmpty();
  }

  @Override
  public Row next() {
    if (!hasNext()) throw new NoSuchElementException("the partition has no more rows");
    Row row = batch.get(next);
    Object[] cells = new Object[row.size() + outputs.size() + (plan.predict() ? 1 : 0)];
    int cell = 0;
    for (; cell < row.size(); cell++) cells[cell] = row.get(cell);
    for (int i = 0; i < outputs.size(); i++) cells[cell++] = output(i);
    if (plan.predict()) cells[cell] = Outputs.prediction((float[]) cells[row.size()]);
    next++;
    return RowFactory.create(cells);
  }

  /** Fills and computes one batch. */
  private void compute() {
    if (predictor == null) open();
    while (batch.size() < plan.batch() && input.hasNext()) {
      Row row = input.next();
      if (ordinals == null) ordinals = plan.schema().ordinals(row.schema());
      encoder.add(row, ordinals);
      batch.add(row);
    }
    encoder.flush();
  }

  private void open() {
    if (TaskContext.get() != null) {
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> close());
    }
    predictor = opened.get();
    encoder = new RowEncoder(plan.schema(),
        (rows, address, bytes) -> predictor.run(rows, address, bytes, values), Long.MAX_VALUE);
    outputs = PredictionPlan.outputs(predictor);
    values = new ByteBuffer[outputs.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = Predictor.allocate((long) plan.batch() * outputs.get(i).size());
    }
  }

  private float[] output(int index) {
    float[] floats = new float[outputs.get(index).size()];
    values[index].asFloatBuffer().position(next * floats.length).get(floats);
    return floats;
  }

  private void close() {
    if (predictor != null) predictor.close();
    if (encoder != null) encoder.close();
    predictor = null;
    encoder = null;
  }
}
