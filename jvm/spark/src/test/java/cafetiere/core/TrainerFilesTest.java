// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Checkpoints that are files: what is larger than the binary form, or wanted as HDF5. */
class TrainerFilesTest {
  private static final int ROWS = 4;
  private static final String NET = "layer { name: 'data' type: 'MemoryData' top: 'data'"
      + " top: 'label' memory_data_param { batch_size: 4 channels: 2 height: 1 width: 1 } }"
      + " layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'"
      + " inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }"
      + " layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' }";
  private static final String SOLVER = "base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed'"
      + " random_seed: 1 snapshot_format: HDF5";

  @TempDir
  Path folder;

  @Test
  void aRunGoesOnFromTheFilesOfAnother() throws IOException {
    byte[] whole;
    try (Trainer trainer = trainer(5)) {
      train(trainer);
      whole = trainer.model();
      trainer.save(folder.resolve("end.caffemodel.h5"), folder.resolve("end.solverstate.h5"));
      assertTrue(trainer.result().contains("\"files\":false"), trainer.result());
    }
    assertTrue(Files.size(folder.resolve("end.caffemodel.h5")) > 0);
    assertTrue(Files.size(folder.resolve("end.solverstate.h5")) > 0);
    try (Trainer trainer = trainer(3)) {
      train(trainer);
    }
    Path state = folder.resolve("checkpoint-3.solverstate.h5");
    try (Trainer trainer = trainer(5)) {
      trainer.restore(folder.resolve("checkpoint-3.caffemodel.h5"), state);
      Files.delete(state);
      train(trainer);
      assertArrayEquals(whole, trainer.model());
    }
  }

  private Trainer trainer(int steps) {
    String options = "{\"solver\": \"" + SOLVER + "\", \"net\": \"" + NET + "\", \"max_iter\": "
        + steps + ", \"checkpoint_folder\": \"" + folder + "\"}";
    return new Trainer(options, new InFiles());
  }

  private static void train(Trainer trainer) {
    String schema = "{\"columns\": [{\"name\": \"data\", \"type\": \"f32\"},"
        + " {\"name\": \"label\", \"type\": \"i32\"}], \"id\": \"\"}";
    ByteBuffer bytes = ByteBuffer.allocateDirect(ROWS * 20).order(ByteOrder.LITTLE_ENDIAN);
    for (int row = 0; row < ROWS; row++) {
      bytes.putInt(8).putFloat(row).putFloat(1 - row).putInt(4).putInt(row % 2);
    }
    try (Rows rows = new Rows(schema)) {
      rows.append(ROWS, bytes.flip());
      trainer.run(rows);
    }
  }

  private static final class InFiles implements Trainer.Listener {
    @Override
    public void event(String json) {}

    @Override
    public void checkpoint(String json, ByteBuffer model, ByteBuffer state) {
      assertNull(model);
      assertNull(state);
      assertTrue(json.contains("\"model_file\"") && json.contains("\"state_file\""), json);
    }
  }
}
