// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** What users' programs call is what jcaffe-members.txt lists. */
class JCaffeMembersTest {
  @Test
  void publicMembersAreThoseOfTheList() throws IOException {
    Path list =
        Path.of(System.getProperty("root"), "jvm/compat/src/test/resources/jcaffe-members.txt");
    String expected = Files.readAllLines(list).stream()
        .filter(line -> !line.isEmpty() && !line.startsWith("#")).collect(Collectors.joining("\n"));
    TreeSet<String> found = new TreeSet<>();
    for (Class<?> type : List.of(BaseObject.class, CaffeNet.class, FloatArray.class, FloatBlob.class,
        FloatDataTransformer.class, Mat.class, MatVector.class, Simulator.class, Utils.class)) {
      add(found, type.getSimpleName(), type.getDeclaredConstructors());
      add(found, type.getSimpleName(), type.getDeclaredMethods());
      add(found, type.getSimpleName(), type.getDeclaredFields());
    }
    assertEquals(expected, String.join("\n", found));
  }

  private static void add(TreeSet<String> found, String type, Member[] members) {
    for (Member member : members) {
      if (!Modifier.isPublic(member.getModifiers()) || member.isSynthetic()) continue;
      String name = type + "." + (member instanceof java.lang.reflect.Constructor ? "<init>"
          : member.getName());
      if (member instanceof Field field) {
        found.add(name + ": " + field.getType().getSimpleName());
        continue;
      }
      String arguments = Arrays.stream(((Executable) member).getParameterTypes())
          .map(Class::getSimpleName).collect(Collectors.joining(", ", "(", ")"));
      String result = member instanceof Method method ? ": " + method.getReturnType().getSimpleName()
          : "";
      found.add(name + arguments + result);
    }
  }
}
