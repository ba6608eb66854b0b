// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import libs.PublicMembers
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

/** What programs for CaffeOnSpark call and derive from is what caffeonspark-members.txt lists. */
class MembersTest {
  @Test def publicMembersAreThoseOfTheList(): Unit = {
    val packages = Seq("com.yahoo.ml.caffe", "com.yahoo.ml.caffe.examples", "com.yahoo.ml.caffe.tools")
    val found = packages.flatMap(PublicMembers.of).distinct.sorted
    assertEquals(PublicMembers.listed("caffeonspark-members.txt").mkString("\n"), found.mkString("\n"))
  }
}
