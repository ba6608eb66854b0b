// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import cafetiere.spark.util.NearestName;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The options of a read. What is not understood is refused, with the name that was probably meant. */
public final class SourceOptions {
  private static final String PATH = "path";

  private final String source;
  private final Map<String, String> given = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);

  /** Checks what was given to {@code source}, which knows a path and these names. */
  public SourceOptions(String source, Map<String, String> given, String... names) {
    this.source = source;
    this.given.putAll(given);
    List<String> known = new ArrayList<>(List.of(names));
    known.add(PATH);
    for (String name : this.given.keySet()) {
      if (known.stream().anyMatch(name::equalsIgnoreCase)) continue;
      throw new IllegalArgumentException(NearestName.noOption(source, name, known));
    }
    if (path().isEmpty()) throw new IllegalArgumentException(source + " needs one path");
  }

  /** Where to read. */
  public String path() {
    return get(PATH, "");
  }

  /** The option's text, or {@code otherwise}. */
  public String get(String name, String otherwise) {
    return given.getOrDefault(name, otherwise);
  }

  /** One of the words that the option may have, of which the first is its default. */
  public String word(String name, String... words) {
    String word = get(name, words[0]);
    if (List.of(words).contains(word)) return word;
    throw new IllegalArgumentException(source + "'s option " + name + " is \"" + word
        + "\": there are \"" + String.join("\", \"", words) + "\"");
  }

  /** A whole number above 0; 0 where the option is not given. */
  public int count(String name) {
    String text = get(name, "");
    if (text.isEmpty()) return 0;
    if (text.matches("0*[1-9]\\d{0,8}")) return Integer.parseInt(text);
    throw new IllegalArgumentException(source + "'s option " + name + " is \"" + text
        + "\": a whole number of at least 1 is needed");
  }
}
