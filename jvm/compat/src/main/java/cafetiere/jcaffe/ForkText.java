// SPDX-License-Identifier: Apache-2.0
package cafetiere.jcaffe;

import cafetiere.protobuf.Message;
import cafetiere.protobuf.TextFormat;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads prototxt with the words of Caffe's forks, as the engine does. */
public final class ForkText {
  private static final Logger LOG = LoggerFactory.getLogger(ForkText.class);
  private static final Pattern UNKNOWN_FIELD =
      Pattern.compile("^\\d+:\\d+:\\t(?:.*\\.)?(\\w+)$", Pattern.MULTILINE);
  private static final Pattern UNKNOWN_ENGINE =
      Pattern.compile("Enum type \"caffe\\.[\\w.]*Engine\" has no value named \"(\\w+)\"");

  private ForkText() {}

  /**
   * Adds the text to a message. Fields of forks that have no effect, and engines that only a fork has, are
   * left out, each with one warning.
   *
   * @param source what the text is, for warnings
   * @throws TextFormat.ParseException if the text has another fault; names line and column
   */
  public static <B extends Message.Builder> B merge(String source, String text, B builder)
      throws TextFormat.ParseException {
    String left = text;
    while (true) {
      Message.Builder trial = builder.clone();
      try {
        TextFormat.merge(left, trial);
      } catch (TextFormat.ParseException e) {
        Matcher engine = UNKNOWN_ENGINE.matcher(e.getMessage());
        if (engine.find()) {
          String shorter = withoutEngine(left, engine.group(1));
          if (shorter.equals(left)) {
            throw e;
          }
          left = shorter;
          LOG.warn("{}: engine: {} is ignored", source, engine.group(1));
          continue;
        }
        for (String field : ignored(e)) {  // all else is in the message by now
          LOG.warn("{}: {} is ignored", source, field);
        }
      }
      builder.clear().mergeFrom(trial.buildPartial());
      return builder;
    }
  }

  /** The fields that the schema lacks, if all of them may be ignored. */
  private static Set<String> ignored(TextFormat.ParseException e) throws TextFormat.ParseException {
    Set<String> fields = new TreeSet<>();
    Matcher unknown = UNKNOWN_FIELD.matcher(e.getMessage());
    while (unknown.find()) {
      fields.add(unknown.group(1));
    }
    if (fields.isEmpty() || !known().containsAll(fields)) {
      throw e;
    }
    return fields;
  }

  /** The text, as many lines as before, with blanks in place of `engine: NAME`. */
  private static String withoutEngine(String text, String name) {
    Matcher found = Pattern.compile("\\bengine\\s*:\\s*" + Pattern.quote(name) + "\\b").matcher(text);
    return found.replaceAll(engine -> engine.group().replaceAll("\\S", " "));
  }

  private static Set<String> known() {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(
        ForkText.class.getResourceAsStream("ignored-fields.txt"), StandardCharsets.UTF_8))) {
      return lines.lines().filter(line -> !line.startsWith("#")).collect(Collectors.toSet());
    } catch (IOException e) {
      throw new IllegalStateException("ignored-fields.txt of the jar cannot be read", e);
    }
  }
}
