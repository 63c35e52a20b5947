package draft

// Rules numbers the planner's rules. It grows with each change by which the same
// world is decided otherwise: a program that meets a higher number on the ledger
// does not plan. What lower numbers decided is decided again by those
// (World.Rules), so that each change below is asked for with Facts.By.
const Rules = RulesNodesNamed

// The changes, by the number that they came with.
const (
	// RulesHeldUntilGone: what a tenant gave up counts against its quota until it
	// is seen gone (leaving.go).
	RulesHeldUntilGone = 2
	// RulesEndsApart: deletions and losses are held back apart, and one tenant's or
	// provider's alone where it is only that (guard.go).
	RulesEndsApart = 3
	// RulesThousandContracts: without limits.contracts a tenant holds 1,000
	// contracts, and no more 20,000 (beyond.go).
	RulesThousandContracts = 4
	// RulesSilentUntilHeard: what is Degraded because its provider does not report stays
	// so until the provider reports, also where a daemon that has just started
	// knows nothing of its flavors yet (package lifecycle).
	RulesSilentUntilHeard = 5
	// RulesSmallerLater: what is taken off a contract is not sold in the same round:
	// its provider may hold it before it reports so (draft.go).
	RulesSmallerLater = 6
	// RulesDenialsKept: a contract that its provider denied stays in the tree until the
	// denial counts no more, whatever retention.ended is (refusals.go).
	RulesDenialsKept = 7
	// RulesBatchSolved: what came at once is solved in plain numbers, with gangs, pools,
	// cards and tenants' limits; the searches before that are gone (package batch).
	RulesBatchSolved = 8
	// RulesReasonApart: a contract's reason is a code with a message apart, and the
	// newest trouble of a delivery is written whatever differs in its message, once a
	// status interval (package lifecycle).
	RulesReasonApart = 9
	// RulesAsked: enforcement Hard holds where the provider's level is known alone, and
	// one that falls below what was asked for makes a contract Degraded; what asks for no
	// accelerators leaves offers that have some alone, and buys none by a partition's
	// minimum; an accelerator without a price is not sold (package match).
	RulesAsked = 10
	// RulesOrderedByAll: an intent with a budget of its own has its place in its batch by
	// all replicas that it waits for, in each pass, and no more by what its last turn had
	// asked for (package contend).
	RulesOrderedByAll = 11
	// RulesGrowthApart: an offer that could grow an extended resource is not taken for one
	// that lacks it because of which of the two is named first (package match).
	RulesGrowthApart = 11
	// RulesClaimsKeepMoney: while others give way to an intent, what it will cost is kept
	// of its tenant's quota and budget, so that a victim of the same tenant does not spend
	// it elsewhere (package contend).
	RulesClaimsKeepMoney = 11
	// RulesWithin: the replicas of an intent are kept in one domain (placement.within),
	// those of a gang by default in one provider (package place).
	RulesWithin = 12
	// RulesRefusedToTerms: what an intent holds that waits no more ends on its own terms in
	// the round that refuses it, and not in the next (decision.go).
	RulesRefusedToTerms = 12
	// RulesBookings: capacity is booked ahead (schedule.book), and nobody else is given it
	// beyond its start; an intent that may not start yet (schedule.notBefore) names its
	// earliest start and no more when it is expected (package ahead).
	RulesBookings = 13
	// RulesDenialsSeen: what clusters report as denied counts for its provider's mark in
	// the round that sees it, and not from the next (denials.go); a contract that was
	// denied when it was released for something else counts (refused.go).
	RulesDenialsSeen = 14
	// RulesNodes: an offer that tells its nodes is sold by the node, and contracts with
	// accelerators name those on which they lie (package nodes).
	RulesNodes = 15
	// RulesUnits: batches are solved with spreads, budgets of several replicas, and intents
	// that are together or apart as units of the search, and what has no place counts for 20
	// times the most expensive place, whatever the currency (package formulate).
	RulesUnits = 16
	// RulesRemapped: what a contract has on a node that is gone, or that has too little, is
	// given another node of its offer; a lack on one node makes contracts Degraded although
	// the offer has enough elsewhere (package layout, nodeslack.go).
	RulesRemapped = 17
	// RulesPartsCounted: what is looked for parts of replicas (spec.split) counts against limits.work,
	// and ends there (package place).
	RulesPartsCounted = 17
	// RulesParts: replicas that may be split are units of their batch, one intent may have a
	// place without another that must be where it is, and who waits because all tenants
	// together have used up a round has the code Planning (packages formulate, settle).
	RulesParts = 17
	// RulesGangsLeaveWhole: spot capacity that is taken back from some replicas of a gang that
	// must share a domain takes the whole gang, and while one of it is on a node that is gone,
	// no other is placed in another rack (package place).
	RulesGangsLeaveWhole = 18
	// RulesPartsOnNodes: an offer that sells parts of cards and tells its nodes is sold by the
	// node too, and its cards are numbered on each node (package inventory).
	RulesPartsOnNodes = 19
	// RulesProfilesAlike: a MIG profile is one whether it is written as a product names it
	// (1g.10gb+me) or as a resource does (1g.10gb.me) (package match).
	RulesProfilesAlike = 19
	// RulesBookingsCounted: what is looked for bookings (schedule.book) counts against
	// limits.work, and ends there (packages ahead, settle).
	RulesBookingsCounted = 19
	// RulesTogetherMoves: intents that belong together move as one where all that they have
	// must go elsewhere, or a lost replica has waited for update.moveAfter; so does a gang of
	// which replicas are put together from parts, which may then be others (packages joint and
	// place).
	RulesTogetherMoves = 20
	// RulesInstancesBooked: instances of MIG are booked ahead; shares of cards are not
	// (package ahead).
	RulesInstancesBooked = 20
	// RulesBatchesSwap: in the search of a batch those without a place join where they could
	// sit, and a group finds more rows emptied for it (package batch).
	RulesBatchesSwap = 21
	// RulesAgain: what a plan does to one contract, booking or tenant counts in that plan for
	// all others as it will in the next one, so that a second plan of the same world changes
	// nothing (invariant 3):
	//   - an intent keeps away from a flavor that denied it as long as it does, and also where
	//     the contract was released for something else meanwhile; a denial counts from when it
	//     began, and not once more from when the contract is given up for it (refused.go);
	//   - an intent that may not start yet and loses the last that it holds waits for its
	//     start, or books it, in the same round (package contend);
	//   - one that was refused for good while some of its replicas are booked books no more of
	//     them, and one of stage find books nothing (packages ahead, settle);
	//   - a booking that an operator gives up ends before it can begin (package settle);
	//   - quota is not borrowed from a tenant whose intent makes others give it back, and
	//     nobody takes back what its borrower has given up (package contend);
	//   - a contract that was made smaller counts at its size at every later instant, whatever
	//     its provider still reports (ledger.Later);
	//   - what stays until the new contract of its replica works does not keep that one in its
	//     domain (the planner's check).
	RulesAgain = 22
	// RulesTogetherLeaves: spot capacity that is taken back from an intent, all of which then
	// goes elsewhere, takes those with it that it belongs together with (package joint).
	RulesTogetherLeaves = 22
	// RulesUnitsBooked: one unit of a card, the smallest share that its offer sells, is booked
	// ahead; larger shares are not (package ahead).
	RulesUnitsBooked = 22
	// RulesTogetherCounted: what is looked for one provider for intents that belong together,
	// and for contracts that give way to an intent, counts against limits.work, and ends there
	// (packages place and contend).
	RulesTogetherCounted = 22
	// RulesStranded: shares of cards are placed by what of the cards the next ten requests of
	// the usual mix would leave, and no more the next one alone (package stranded); of offers
	// that are equal in price and score the one where that is least goes first.
	RulesStranded = 23
	// RulesLastRoom: consolidation leaves room for each kind of request that is asked for
	// (package consolidate).
	RulesLastRoom = 23
	// RulesServedAfterMoves: after consolidation has moved something those who wait are served
	// again, and it looks again by what is kept for them then (package consolidate).
	RulesServedAfterMoves = 23
	// RulesBookedWhole: replicas that share a domain are booked in the best one with room for
	// all of them, by the cost and score of all, where the first one's best offer chose it, or
	// the first provider; where they only prefer to share it, too (package ahead). What books a
	// term that is over before any of it began is refused, and no more placed now.
	RulesBookedWhole = 23
	// RulesAskedFirst: what asks for no accelerator and may be next to some is where there are
	// none if it fits there in any way: in several domains where it prefers one, or in parts
	// (package place).
	RulesAskedFirst = 23
	// RulesPricesCounted: an offer with a price that is higher than is counted is not sold,
	// where it was sold for less than it states (package tariff).
	RulesPricesCounted = 23
	// RulesFollowersWhole: in a batch a gang that follows another has places for all of its
	// replicas or for none (package batch).
	RulesFollowersWhole = 23
	// RulesMinReplicas: where fewer than minReplicas find a place none of them is placed; what
	// falls below by loss is kept (package place).
	RulesMinReplicas = 23
	// RulesPairsBounded: in a batch of more than two million pairs of a kind of request and an
	// offer each kind has its cheapest places alone (package formulate).
	RulesPairsBounded = 23
	// RulesFarPrices: what a contract will cost counts at the most that its price comes to from
	// 400 days ahead on, where that has windows (package account).
	RulesFarPrices = 23
	// RulesGangsCounted: what a gang loses with spot capacity that is taken back from one of its
	// replicas counts for safety.maxEnds (package planner).
	RulesGangsCounted = 23
	// RulesGivenUpApart: what an intent gives up by itself, because it is suspended, only finds
	// or wants fewer replicas, does not count for safety.maxEnds: it ends in the same round, and
	// what was held back with it ended in the next (package planner).
	RulesGivenUpApart = 23
	// RulesEndNamed: of what ends at one instant, what makes room where an intent is expected to
	// be placed is named, and no more the last by name (package explain); a consumer whose file
	// cannot be read is refused as that, and not as unknown (package settle).
	RulesEndNamed = 23
	// RulesConditionsMade: making what a condition is evaluated by counts against
	// limits.conditions (package settle).
	RulesConditionsMade = 23
	// RulesTurnsRotate: where a round's units do not do for all, the order of tenants, and
	// of a tenant's intents that found nothing, is one order that begins elsewhere each minute,
	// so that each has its turn after a bounded time; it was another draw each minute (package
	// settle).
	RulesTurnsRotate = 23
	// RulesPooledNowhere: what asks for no accelerators, and so names no nodes, is in no domain
	// that only nodes bear: it was placed on them, and refused by the check of the plan in each
	// round (package place).
	RulesPooledNowhere = 23
	// RulesScarcity: an intent of objective cost leaves a place to those who usually come and
	// can use little else, where that is worth more than it pays elsewhere (package scarcity).
	RulesScarcity = 23
	// RulesNodesNamed: a reservation that names nodes of which one is gone is not resized where
	// there are none in its place; it came to name none (package layout).
	RulesNodesNamed = 24
	// RulesAnnealed: a batch of seats that have nothing in common but room is annealed (package
	// batch).
	RulesAnnealed = 24
	// RulesEditsInDomain: what an edit leaves on its nodes is in the domain that its replicas
	// share, where one offer has several: a gang that an edit sends to another rack goes there
	// whole, where the plan's check refused it in each round (packages place and rules). What of a
	// gang is to leave its provider is not the rest that an edit has to keep to.
	RulesEditsInDomain = 24
	// RulesRoomMade: where the fleet applies consolidation, a contract moves to make room for an
	// intent that finds no place (package consolidate).
	RulesRoomMade = 24
	// RulesAgainAll: what RulesAgain states holds of these, too:
	//   - what is taken off a contract on nodes is held once until its provider says that it
	//     let go, and not where it lay and in addition anywhere else (draft.HoldingOf);
	//   - units of which nobody says on which card they lie are next to those that a plan places,
	//     and not where they were before these (package inventory);
	//   - what goes to other nodes because one cannot hold its part follows a change of its
	//     intent in the same round, and what its provider denies goes elsewhere at once (package
	//     place);
	//   - consolidation sees the contracts of shrunken flavors as the plan leaves them, and not
	//     as they were before some went to other nodes or offers (package planner), and keeps away
	//     from what denied an intent also where nothing else happens to that (package consolidate);
	//   - a booking that has no place, in place of what is booked, is tried again when others
	//     have given way (package ahead);
	//   - the figures of a tenant's limit, where a gang does not fit, are without the replicas
	//     that were tried (package place);
	//   - a booking that its intent gives up does not count for safety.maxEnds (package settle);
	//   - what is kept for those that wait is chosen by what places are worth to those who hold
	//     something when all have had their turns, and not to those who did before (package planner).
	RulesAgainAll = 24
	// RulesAloneInDomain: in the search of a batch an only replica that must be in some domain has
	// places in those alone; it came to lie outside of all, and the plan's check refused it in each
	// round (package formulate).
	RulesAloneInDomain = 24
	// RulesEditsStay: of a gang of which the rest leaves its provider an edit places nothing in
	// another domain by itself: all go to one that holds all, or it waits in its own; it went
	// where there was room for one, and the others stayed behind. What goes elsewhere whole does not
	// say why it found no place where it was (package place).
	RulesEditsStay = 24
)
