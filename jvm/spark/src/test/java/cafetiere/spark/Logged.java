// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;

/** What a class logs while this is open. */
public final class Logged extends AbstractAppender implements AutoCloseable {
  private final Queue<String> lines = new ConcurrentLinkedQueue<>();
  private final Logger logger;
  private final Level before;

  public Logged(Class<?> type) {
    super("logged", null, null, false, Property.EMPTY_ARRAY);
    logger = (Logger) LogManager.getLogger(type);
    before = logger.getLevel();
    start();
    logger.addAppender(this);
    logger.setLevel(Level.INFO);
  }

  @Override
  public void append(LogEvent event) {
    lines.add(event.getLevel() + " " + event.getMessage().getFormattedMessage());
  }

  /** Level and message, a line each. */
  public String text() {
    return String.join("\n", lines);
  }

  @Override
  public void close() {
    logger.removeAppender(this);
    logger.setLevel(before);
  }
}
