// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class NearestNameTest {
  @Test
  void findsWhatIsCloseAndNothingElse() {
    List<String> names = List.of("x", "id", "label", "image");
    assertEquals(Optional.of("image"), NearestName.of("imgae", List.of("label", "image")));
    assertEquals(Optional.of("label"), NearestName.of("LABEL", names));
    assertEquals(Optional.of("id"), NearestName.of("sid", names));
    assertEquals(Optional.empty(), NearestName.of("label", List.of("x", "y", "c")));
    assertEquals(Optional.empty(), NearestName.of("zz", names));
    assertEquals(Optional.empty(), NearestName.of("label", List.of()));
  }

  @Test
  void anOptionThatIsNotThereNamesTheNearestOrAll() {
    List<String> known = List.of("partitions", "path");
    assertEquals("idx has no option \"partition\"; did you mean \"partitions\"?",
        NearestName.noOption("idx", "partition", known));
    assertEquals("idx has no option \"header\"; it has partitions, path",
        NearestName.noOption("idx", "header", known));
  }
}
