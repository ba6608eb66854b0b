// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.core.Predictor;
import java.nio.ByteBuffer;
import java.util.List;

/** A predictor with room for the outputs of one batch; for one task at a time. */
public final class BatchPredictor implements AutoCloseable {
  private final Predictor predictor;
  private final int batch;
  private final List<PredictionPlan.Output> outputs;
  private final ByteBuffer[] values;

  /** Takes over `predictor`. */
  public BatchPredictor(Predictor predictor, int batch) {
    this.predictor = predictor;
    this.batch = batch;
    this.outputs = PredictionPlan.outputs(predictor);
    this.values = outputs.stream()
        .map(output -> Predictor.allocate((long) batch * output.size()))
        .toArray(ByteBuffer[]::new);
  }

  /** A further one of the same plan, which shares this one's weights; any thread may ask for it. */
  BatchPredictor share() {
    return new BatchPredictor(predictor.share(), batch);
  }

  /** Forgets the rows it has seen. */
  void reset() {
    predictor.reset();
  }

  /** Computes `rows` rows, at most a batch, that lie encoded at `address`. */
  public void run(long rows, long address, long bytes) {
    predictor.run(rows, address, bytes, values);
  }

  /** The outputs of row `row` of the last batch. */
  public float[][] outputs(int row) {
    float[][] floats = new float[values.length][];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = new float[outputs.get(i).size()];
      values[i].asFloatBuffer().position(row * floats[i].length).get(floats[i]);
    }
    return floats;
  }

  @Override
  public void close() {
    predictor.close();
  }
}
