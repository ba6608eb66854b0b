// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Carries a run's events to the driver over Spark's own connection, so that no further port is
 * needed. Optional: {@code --conf spark.plugins=cafetiere.spark.CafetierePlugin}.
 *
 * <p>Spark makes one plugin a process and gives tasks no way to reach it, hence the two static
 * fields; they hold nothing but the door to Spark and the runs that listen at it.
 */
public final class CafetierePlugin implements SparkPlugin {
  private static final Map<String, Consumer<RunEvent>> LISTENERS = new ConcurrentHashMap<>();
  private static volatile PluginContext executorContext;

  @Override
  public DriverPlugin driverPlugin() {
    JavaVersion.require();
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext sc, PluginContext context) {
        return Map.of();
      }

      @Override
      public Object receive(Object message) {
        if (message instanceof RunEvent) {
          RunEvent event = (RunEvent) message;
          Consumer<RunEvent> listener = LISTENERS.get(event.run());
          if (listener != null) listener.accept(event);
        }
        return null;
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    JavaVersion.require();
    return new ExecutorPlugin() {
      @Override
      public void init(PluginContext context, Map<String, String> extraConf) {
        executorContext = context;
      }

      @Override
      public void shutdown() {
        executorContext = null;
      }
    };
  }

  /** Driver side: events of {@code run} go to {@code listener} until {@link #forget}. */
  static void listen(String run, Consumer<RunEvent> listener) {
    LISTENERS.put(run, listener);
  }

  /** Driver side: ends {@link #listen}. */
  static void forget(String run) {
    LISTENERS.remove(run);
  }

  /** Executor side: the way to the driver, or null where the plugin is not loaded. */
  static PluginContext executorContext() {
    return executorContext;
  }
}
