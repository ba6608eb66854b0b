// SPDX-License-Identifier: Apache-2.0
import cafetiere.core.Engine;
import cafetiere.core.Rows;
import cafetiere.core.Trainer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Trains a small net for one step with the engine of this class's own loader. */
public final class OneStep {
  private static final int ROWS = 4;
  private static final String NET = "layer { name: 'data' type: 'MemoryData' top: 'data'"
      + " top: 'label' memory_data_param { batch_size: 4 channels: 2 height: 1 width: 1 } }"
      + " layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'"
      + " inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }"
      + " layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' }";
  private static final String SOLVER = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 random_seed: 1";

  private OneStep() {}

  /** The engine's version and the trained weights' hash. */
  public static String run() {
    String options = "{\"solver\": \"" + SOLVER + "\", \"net\": \"" + NET + "\"}";
    String schema = "{\"columns\": [{\"name\": \"data\", \"type\": \"f32\"},"
        + " {\"name\": \"label\", \"type\": \"i32\"}], \"id\": \"\"}";
    try (Rows rows = new Rows(schema);
        Trainer trainer = new Trainer(options, new Silent())) {
      rows.append(ROWS, encoded());
      trainer.run(rows);
      String sha256 = trainer.result().replaceAll(".*\"sha256\":\"(\\w+)\".*", "$1");
      return Engine.version() + " " + sha256;
    }
  }

  private static ByteBuffer encoded() {
    ByteBuffer rows = ByteBuffer.allocateDirect(ROWS * 20).order(ByteOrder.LITTLE_ENDIAN);
    for (int row = 0; row < ROWS; row++) {
      rows.putInt(8).putFloat(row).putFloat(1 - row).putInt(4).putInt(row % 2);
    }
    return rows.flip();
  }

  private static final class Silent implements Trainer.Listener {
    @Override
    public void event(String json) {}

    @Override
    public void checkpoint(String json, ByteBuffer model, ByteBuffer state) {}
  }
}
