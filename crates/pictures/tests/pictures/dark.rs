//! Test of pictures for a dark background.

use oneport_pictures::dark;

#[test]
fn lightness_is_inverted_and_segments_stay() {
    let svg = "<svg x=\"1\"><style>.r0{fill:#3b78c2} .s0{fill:#fff;stroke:#3b78c2}</style>\
               <text fill=\"#444\" stroke=\"#26476f\">a \"#444\"</text><line marker-end=\"url(#add)\"/></svg>";
    let shown = "<svg fill=\"#ffffff\" x=\"1\"><style>.r0{fill:#3b78c2} \
                 .s0{fill:#000000;stroke:#3d7ac4}</style>\
                 <text fill=\"#bbbbbb\" stroke=\"#90b1d9\">a \"#444\"</text><line marker-end=\"url(#add)\"/></svg>";
    assert_eq!(dark(svg), shown);
}
