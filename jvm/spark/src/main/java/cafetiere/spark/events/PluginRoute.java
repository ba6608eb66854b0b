// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.spark.api.plugin.PluginContext;

/**
 * The route for events that {@code CafetierePlugin} opens. Spark makes one plugin a process and gives
 * tasks no way to reach it, hence the two static fields; they hold nothing but the door to Spark and
 * the runs that listen at it.
 */
public final class PluginRoute {
  private static final Map<String, Consumer<RunEvent>> LISTENERS = new ConcurrentHashMap<>();
  private static volatile PluginContext executorContext;

  private PluginRoute() {}

  /** Driver side: events of {@code run} go to {@code listener} until {@link #forget}. */
  static void listen(String run, Consumer<RunEvent> listener) {
    LISTENERS.put(run, listener);
  }

  /** Driver side: ends {@link #listen}. */
  static void forget(String run) {
    LISTENERS.remove(run);
  }

  /** Driver side: what the plugin was sent. */
  public static void receive(Object message) {
    if (!(message instanceof RunEvent event)) return;
    Consumer<RunEvent> listener = LISTENERS.get(event.run());
    if (listener != null) listener.accept(event);
  }

  /** Executor side: the plugin is there, or with null it ends. */
  public static void open(PluginContext context) {
    executorContext = context;
  }

  /** Executor side: the way to the driver, or null where the plugin is not loaded. */
  static PluginContext executorContext() {
    return executorContext;
  }
}
